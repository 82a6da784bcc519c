// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// mounted returns the mounts below a directory.
func mounted(t testing.TB, dir string) string {
	t.Helper()
	return run(t, "awk", "-v", "dir="+dir+"/", `index($5, dir) == 1 { print substr($5, length(dir) + 1), $9 }`, "/proc/thread-self/mountinfo")
}

func TestCLN2_Mounts(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Cgroup)
	dir := testns.TempDir(t)
	files(t, dir, "run/cilium/cgroupv2/", "run/cilium/x", "custom/bpf/", "custom/cgroup/", "other/", "kept/", "var/run -> ../run")
	mount := func(fstype string, at ...string) {
		for _, at := range at {
			require.NoError(t, unix.Mount(fstype, filepath.Join(dir, at), fstype, 0, ""))
		}
	}
	mount("tmpfs", "custom/cgroup") // a foreign one below
	mount("cgroup2", "run/cilium/cgroupv2", "custom/cgroup", "other", "kept")
	mount("bpf", "custom/bpf")
	pinAt(t, array(t, "x"), dir, "custom/bpf/cilium/x")

	own := ours()
	own.StateDirs = []string{filepath.Join(dir, "var/run/cilium")}
	own.Mounts = []cleanup.MountRule{
		{Path: dir + "/var/run/cilium/cgroupv2", Type: "cgroup2"}, // also in a state directory, but listed once
		{Path: dir + "/custom/cgroup", Type: "cgroup2"},
		{Path: dir + "/custom/bpf", Type: "bpf"},
		{Path: dir + "/other", Type: "tmpfs"}, // of another type: not owned
		{Path: dir + "/kept", Type: "cgroup2"},
		{Path: dir + "/nothing/here", Type: "bpf"},
	}
	c := cleanup.Leftovers{Ownership: excepting(own), Scope: "all-state", BPFRoots: []string{dir + "/nothing"}, CgroupRoot: noCgroup, Keep: []string{dir + "/kept"}}
	before := mounted(t, dir)
	inv := listed(t, context.Background(), c)
	require.Equal(t, before, mounted(t, dir))
	require.Equal(t, []string{
		"pin " + dir + "/custom/bpf/cilium/x", "pin directory " + dir + "/custom/bpf/cilium",
		"mount " + dir + "/run/cilium/cgroupv2", "mount " + dir + "/custom/cgroup", "mount " + dir + "/custom/bpf",
		"state directory " + dir + "/var/run/cilium",
	}, objects(inv.Items))
	require.NoError(t, c.Remove(context.Background(), inv.Items))
	require.Equal(t, "custom/cgroup tmpfs\nother cgroup2\nkept cgroup2\n", mounted(t, dir))
	require.NoDirExists(t, filepath.Join(dir, "run/cilium"))
	apply(t, c)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// Pins of other owners would go with the file system that holds them.
func TestCLN6_BPFFSWithForeignPinsStays(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := bpfDir(t)
	own := ours()
	own.Mounts = []cleanup.MountRule{{Path: root, Type: "bpf"}}
	c := cleanup.Leftovers{Ownership: excepting(own), Scope: "all-state", BPFRoots: []string{root}, CgroupRoot: noCgroup}
	pinAt(t, array(t, "x"), root, "cilium/x")
	inv := listed(t, context.Background(), c)
	require.Equal(t, []string{"pin " + root + "/cilium/x", "pin directory " + root + "/cilium", "mount " + root}, objects(inv.Items))

	pinAt(t, array(t, "foreign"), root, "deep/er/foreign")
	err := c.Remove(context.Background(), inv.Items)
	require.EqualError(t, err, "cleanup: remove mount "+root+": it now holds a pin of another owner; left as it is: deep/er/foreign")
	require.FileExists(t, filepath.Join(root, "deep/er/foreign"))

	inv = listed(t, context.Background(), c)
	require.Empty(t, inv.Items)
	require.Equal(t, []cleanup.Item{{Kind: "mount", Object: root, Detail: "bpf; holds a pin of another owner: deep/er/foreign"}}, inv.Left)
	require.NoError(t, os.Remove(filepath.Join(root, "deep/er/foreign")))
	apply(t, c)
}
