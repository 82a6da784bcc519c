// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestHP3_WhatIsMountedOrADeviceIsRefused(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/file", []byte("theirs"), 0o600))
	require.NoError(t, unix.Mount(dir+"/file", dir+"/file", "", unix.MS_BIND, ""))
	defer unix.Unmount(dir+"/file", unix.MNT_DETACH)
	j := testledger.Open(t, testledger.Dir(t))
	c := hostpath.Content{Path: dir + "/file", Bytes: []byte("ours"), Secret: true, Rewritten: true}
	err := testledger.Step{Wanter: c, Book: j}.Apply(t.Context())
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "something is mounted on it: unmount that first")
	status, err := j.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, status.Records, "it was never ours")
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o600))
	if err := unix.Mknod(dir+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		testns.Skip(t, "mknod of a device: "+err.Error())
	}
	before := names(t, dir)
	for path, is := range map[string]string{"/pipe": "FIFO", "/device": "CharDevice"} {
		c.Path = dir + path
		require.ErrorContains(t, testledger.Step{Wanter: c}.Apply(t.Context()), "host path "+c.Path+" is a "+is+", and must be a File: move it away")
	}
	require.Equal(t, before, names(t, dir))
}
