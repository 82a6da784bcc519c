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

func mkdir(d *durable.Dir, name string) error {
	made, err := d.OpenNewDir(name, 0o755)
	if err != nil {
		return err
	}
	return made.Close()
}

// A new object that cannot get its wanted mode is removed again, since it is not recorded
// yet.
func TestPLAN6_ANewFileThatCannotBeFinishedIsRemovedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		refused uint32
		make    func(*durable.Dir) error
	}{
		"directory that cannot be opened": {unix.SYS_OPENAT, func(d *durable.Dir) error { return mkdir(d, "x") }},
		"directory that cannot be synced": {unix.SYS_FSYNC, func(d *durable.Dir) error { return mkdir(d, "x") }},
		"file without its mode":           {unix.SYS_FCHMOD, func(d *durable.Dir) error { return d.CreateNew("x", 0o644) }},
		"file that cannot be synced":      {unix.SYS_FSYNC, func(d *durable.Dir) error { return d.CreateNew("x", 0o644) }},
		"file of a batch, not synced":     {unix.SYS_FSYNC, func(d *durable.Dir) error { return d.Unsynced().CreateNew("x", 0o644) }},
	} {
		dir := t.TempDir() // removed by a thread that has the permission
		t.Run(name, func(t *testing.T) {
			d := open(t, dir)
			testns.Enter(t, 0)
			require.NoError(t, testns.Refuse(unix.EIO, testns.Call{Number: tc.refused}))
			err := tc.make(d)
			require.ErrorIs(t, err, unix.EIO)
			require.ErrorContains(t, err, dir, "the error has the whole path")
			_, err = d.Lstat("x")
			require.ErrorContains(t, err, "no such file")
		})
	}
}

// A file of /proc says that it is empty, and is read up to the bound all the same.
func TestSEC6_AFileLargerThanItSays(t *testing.T) {
	d := open(t, "/proc/self")
	content, err := d.ReadFile("status", 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(content), "Pid:")
	_, err = d.ReadFile("status", 10)
	require.EqualError(t, err, "/proc/self/status is larger than 10 bytes")
}

// A name is as a power cut leaves it until its directory is synced.
func TestEveryChangeOfNamesIsSynced(t *testing.T) {
	for name, change := range map[string]func(*durable.Dir) error{
		"OpenNewDir": func(d *durable.Dir) error { return mkdir(d, "new") },
		"CreateNew":  func(d *durable.Dir) error { return d.CreateNew("new", 0o644) },
		"SymlinkNew": func(d *durable.Dir) error { return d.SymlinkNew("target", "new") },
		"WriteFile":  func(d *durable.Dir) error { return d.WriteFile("new", 0o644, nil) },
		"Rename":     func(d *durable.Dir) error { return d.Rename("old", "new") },
		"RenameNew":  func(d *durable.Dir) error { return d.RenameNew("old", "new") },
		"Remove":     func(d *durable.Dir) error { return d.Remove("old") },
	} {
		dir := t.TempDir()
		t.Run(name, func(t *testing.T) {
			d := open(t, dir)
			require.NoError(t, d.CreateNew("old", 0o600))
			testns.Enter(t, 0)
			require.NoError(t, testns.Refuse(unix.EIO, testns.Call{Number: unix.SYS_FSYNC, First: uint32(d.File().Fd())}))
			require.ErrorIs(t, change(d), unix.EIO)
		})
	}
}
