// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/testns"
)

// A new object that cannot get its wanted mode is removed again, since it is not recorded
// yet.
func TestPLAN6_WhatCannotBeFinishedIsNotLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		refused uint32
		make    func(*durable.Dir) error
	}{
		"directory that cannot be opened": {unix.SYS_OPENAT, func(d *durable.Dir) error { return d.Mkdir("x", 0o755) }},
		"directory that cannot be synced": {unix.SYS_FSYNC, func(d *durable.Dir) error { return d.Mkdir("x", 0o755) }},
		"file without its mode":           {unix.SYS_FCHMOD, func(d *durable.Dir) error { return d.CreateNew("x", 0o644) }},
		"file that cannot be synced":      {unix.SYS_FSYNC, func(d *durable.Dir) error { return d.CreateNew("x", 0o644) }},
	} {
		dir := t.TempDir() // removed by a thread that has the permission
		t.Run(name, func(t *testing.T) {
			d, err := durable.OpenDir(dir)
			require.NoError(t, err)
			defer d.Close()
			testns.Enter(t, 0)
			require.NoError(t, testns.Refuse(unix.EIO, testns.Call{Number: tc.refused}))
			err = tc.make(d)
			require.ErrorIs(t, err, unix.EIO)
			require.ErrorContains(t, err, dir, "the error has the whole path")
			_, err = d.Lstat("x")
			require.ErrorContains(t, err, "no such file")
		})
	}
}
