// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmounttest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/mount"
)

// Real is a Node on the running kernel, in a mount namespace of the test.
type Real struct {
	t   testing.TB
	dir string
}

// NewReal enters the namespace, on the test's own goroutine. With old, it refuses the
// calls that [OldCallsOnly] refuses.
func NewReal(t testing.TB, old bool) Node {
	t.Helper()
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	if old {
		require.NoError(t, OldCallsOnly())
	}
	return &Real{t: t, dir: dir}
}

// OldCallsOnly makes fsopen(2) fail on the calling thread, as a seccomp profile may.
func OldCallsOnly() error { return testns.Refuse(unix.EPERM, testns.Call{Number: unix.SYS_FSOPEN}) }

// Dir implements Node.
func (n *Real) Dir() string { return n.dir }

// Kernel implements Node: the zero value of every type means this one.
func (n *Real) Kernel() mount.Mounter { return nil }

// Put implements Node. It mounts aside and binds, since mount(2) does not stack two
// mounts of one file system on a path.
func (n *Real) Put(path, fstype, options string) {
	n.t.Helper()
	var flags uintptr
	var rest []string
	root := "/"
	for o := range strings.SplitSeq(options, ",") {
		switch dir, isRoot := strings.CutPrefix(o, "root="); {
		case isRoot:
			root = dir
		case mountFlags[o] != 0:
			flags |= mountFlags[o]
		case o != "":
			rest = append(rest, o)
		}
	}
	aside := Mkdir(n.t, n, "aside")
	switch {
	case fstype != "cgroup2":
		require.NoError(n.t, unix.Mount("none", aside, fstype, flags, strings.Join(rest, ",")))
	case root == "/":
		n.mountCgroup2(aside)
	default:
		n.InCgroup(root, func() { n.mountCgroup2(aside) })
		root = "/"
	}
	source := filepath.Join(aside, root)
	require.NoError(n.t, os.MkdirAll(source, 0o755))
	require.NoError(n.t, unix.Mount(source, path, "", unix.MS_BIND, ""))
	require.NoError(n.t, unix.Unmount(aside, unix.MNT_DETACH))
}

// mountCgroup2 keeps the options of the machine's hierarchy, which mount(2) would reset.
func (n *Real) mountCgroup2(path string) {
	n.t.Helper()
	require.NoError(n.t, fsmount.Real{}.Mount("none", path, "cgroup2", ""))
}

var mountFlags = map[string]uintptr{"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC}

// InCgroup implements Node; the cgroup is made anew, and removed with the test.
func (n *Real) InCgroup(name string, f func()) {
	t := n.t
	t.Helper()
	hierarchy := Mkdir(t, n, "hierarchy")
	if len(n.Mounts(hierarchy)) == 0 {
		n.mountCgroup2(hierarchy)
	}
	cgroup := filepath.Join(hierarchy, "slipway-test-"+strconv.Itoa(os.Getpid())+strings.ReplaceAll(name, "/", "-"))
	require.NoError(t, os.Mkdir(cgroup, 0o755))
	t.Cleanup(func() { require.NoError(t, os.Remove(cgroup)) })
	enter(t, testns.Process(t, testns.Cgroup, cgroup), f)
}

// enter calls f in the cgroup namespace of a process.
func enter(t testing.TB, procDir string, f func()) {
	t.Helper()
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/cgroup")
	require.NoError(t, err)
	defer own.Close()
	other, err := os.Open(procDir + "/ns/cgroup")
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, unix.Setns(int(other.Fd()), unix.CLONE_NEWCGROUP))
	defer func() { require.NoError(t, unix.Setns(int(own.Fd()), unix.CLONE_NEWCGROUP)) }()
	f()
}

// Unmount implements Node.
func (n *Real) Unmount(path string) {
	n.t.Helper()
	require.NoError(n.t, unix.Unmount(path, unix.UMOUNT_NOFOLLOW))
}

// Pin implements Node.
func (n *Real) Pin(path string) {
	n.t.Helper()
	require.NoError(n.t, os.MkdirAll(filepath.Dir(path), 0o700))
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(n.t, err)
	defer m.Close()
	require.NoError(n.t, m.Pin(path))
}

// Hold implements Node.
func (n *Real) Hold(path string) (release func()) {
	n.t.Helper()
	f, err := os.Open(path)
	require.NoError(n.t, err)
	return func() { f.Close() }
}

// Mounts implements Node.
func (n *Real) Mounts(path string) []string {
	n.t.Helper()
	infos, err := mountinfo.Read()
	require.NoError(n.t, err)
	var types []string
	for _, i := range mountinfo.On(infos, path) {
		types = append(types, i.FSType)
	}
	return types
}
