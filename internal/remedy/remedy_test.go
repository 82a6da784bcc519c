// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package remedy_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/remedy"
)

func TestACauseIsAddedOnce(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EROFS:   " (needs a file system mounted read-write)",
		syscall.EBUSY:   " (something is mounted on it: unmount that first)",
		syscall.ENOSPC:  " (needs free space and free inodes: see df, and df -i)",
		syscall.ENOTDIR: " (a directory belongs there: move the other object away)",
		syscall.EACCES:  " (needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner, and no immutable attribute or security module in the way)",
	} {
		added := remedy.File(err)
		require.EqualError(t, added, err.Error()+want)
		require.ErrorIs(t, added, err)
		outer := fmt.Errorf("write: %w", added)
		require.Equal(t, outer, remedy.Add(remedy.File(outer), "needs something else too"), want)
	}
	another := errors.New("another")
	require.Equal(t, another, remedy.File(another))
	require.NoError(t, remedy.Add(nil, "needs something"))
}
