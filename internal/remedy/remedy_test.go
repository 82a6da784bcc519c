// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package remedy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/remedy"
)

func TestFile(t *testing.T) {
	for errno, want := range map[error]string{
		syscall.EROFS: "mounted read-write", syscall.EACCES: "needs root", syscall.EPERM: "immutable attribute",
		syscall.EBUSY: "unmount that", syscall.ENOSPC: "inodes", syscall.ENOTDIR: "move the other object away",
	} {
		err := remedy.File(&fs.PathError{Op: "open", Path: "/x", Err: errno})
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, want)
		require.EqualError(t, remedy.File(fmt.Errorf("write: %w", err)), "write: "+err.Error(), "it is added once")
	}
	require.NoError(t, remedy.File(nil))
	require.NoError(t, remedy.Add(nil, "x"))
	other := errors.New("other")
	require.Equal(t, other, remedy.File(other))
	require.Equal(t, other, remedy.Capabilities(other, "", remedy.SysAdmin))
}

func TestCapabilities(t *testing.T) {
	err := remedy.Capabilities(syscall.EPERM, "in the initial user namespace", remedy.SysAdmin)
	require.ErrorIs(t, err, syscall.EPERM)
	want := "needs CAP_SYS_ADMIN in the initial user namespace"
	if len(remedy.Missing(remedy.SysAdmin)) == 0 {
		want += ", which is in effect here: refused by a seccomp or security module's profile"
	}
	require.ErrorContains(t, err, want)
	require.Equal(t, "CAP_NET_ADMIN and CAP_BPF", remedy.Names(remedy.NetAdmin, remedy.BPF))
}
