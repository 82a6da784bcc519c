// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testns"
)

const options = "nosuid,nodev,noexec"

// directory returns a directory on its own file system, in the test's mount namespace.
func directory(t testing.TB) string {
	t.Helper()
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	return dir
}

func on(t testing.TB, path string) []mountinfo.Mount {
	t.Helper()
	infos, err := mountinfo.Read()
	require.NoError(t, err)
	return mountinfo.On(infos, path)
}

// requireTold fails unless the mount on path can be recognised by its source or, before
// Linux 5.19, by a directory.
func requireTold(t *testing.T, path, source string) {
	t.Helper()
	if on(t, path)[0].Source != source {
		require.DirExists(t, filepath.Join(path, "slipway_"+hex.EncodeToString([]byte(source))))
	}
}

// Many at once, each on a thread of its own in the test's mount namespace.
func TestNeverStacksAtOnce(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run("", func(t *testing.T) { atOnce(t, old) })
	}
}

func atOnce(t *testing.T, old bool) {
	dir := directory(t)
	for round := range 20 {
		path := filepath.Join(dir, "bpf", string(rune('a'+round)))
		require.NoError(t, os.MkdirAll(path, 0o755))
		callAtOnce(t, 8, path, func(path string) error {
			if old {
				if err := refuseFsopen(); err != nil {
					return err
				}
			}
			return fsmount.Real{}.Mount("ours", path, "bpf", options)
		}) // even the winner may not know that it is
		require.Len(t, on(t, path), 1)
	}
}

func refuseFsopen() error {
	return testns.Refuse(unix.ENOSYS, testns.Call{Number: unix.SYS_FSOPEN})
}

// A seccomp profile may know none of the new calls, or some.
func TestBPF7_WhereASeccompProfileRefusesTheNewCalls(t *testing.T) {
	calls := map[string]uint32{
		"fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "move_mount": unix.SYS_MOVE_MOUNT,
	}
	for call, number := range calls {
		for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
			for _, fstype := range []string{"bpf", "cgroup2"} {
				t.Run(call+" "+errno.Error()+" "+fstype, func(t *testing.T) {
					path := filepath.Join(directory(t), "point")
					require.NoError(t, os.Mkdir(path, 0o755))
					require.NoError(t, testns.Refuse(errno, testns.Call{Number: number}))
					var k fsmount.Real
					require.NoError(t, k.Mount("ours", path, fstype, options))
					require.Len(t, on(t, path), 1)
					require.Equal(t, fstype, on(t, path)[0].FSType)
					requireTold(t, path, "ours")
					require.Subset(t, on(t, path)[0].Options, []string{"nosuid", "nodev", "noexec"})
					require.ErrorIs(t, k.Mount("ours", path, fstype, options), unix.EBUSY)
					require.Len(t, on(t, path), 1)
				})
			}
		}
	}
}

// The mount is on the directory that was opened, not on a link.
func TestSEC4_ALinkInThePlaceOfTheDirectoryIsNotFollowed(t *testing.T) {
	dir := directory(t)
	elsewhere, path := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "point")
	require.NoError(t, os.Mkdir(elsewhere, 0o755))
	require.NoError(t, os.Symlink(elsewhere, path))
	for range 2 {
		require.ErrorIs(t, fsmount.Real{}.Mount("ours", path, "bpf", options), unix.ENOTDIR)
		require.Empty(t, on(t, elsewhere))
		require.NoError(t, refuseFsopen())
	}
}
