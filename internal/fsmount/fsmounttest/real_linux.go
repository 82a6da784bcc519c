// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmounttest

import (
	"errors"
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
)

// real is the running kernel, in a mount namespace of the test.
type real struct {
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
	m := real{t, dir}
	return Node{machine: m, InCgroup: m.inCgroup, t: t, dir: dir}
}

// OldCallsOnly makes fsopen(2) fail on the calling thread, as a seccomp profile may.
func OldCallsOnly() error { return testns.Refuse(unix.EPERM, testns.Call{Number: unix.SYS_FSOPEN}) }

// PutMount mounts aside and binds, since mount(2) does not stack two mounts of one file
// system on a path.
func (m real) PutMount(path, fstype, options string) error {
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
	aside := filepath.Join(m.dir, "aside")
	err := os.MkdirAll(aside, 0o755)
	switch {
	case err != nil:
		return err
	case fstype != "cgroup2":
		err = unix.Mount("none", aside, fstype, flags, strings.Join(rest, ","))
	case root == "/":
		err = mountCgroup2(aside)
	default:
		m.inCgroup(root, func() { err = mountCgroup2(aside) })
		root = "/"
	}
	if err != nil {
		return err
	}
	source := filepath.Join(aside, root)
	if err = os.MkdirAll(source, 0o755); err == nil {
		err = unix.Mount(source, path, "", unix.MS_BIND, "")
	}
	return errors.Join(err, unix.Unmount(aside, unix.MNT_DETACH))
}

// mountCgroup2 keeps the options of the machine's hierarchy, which mount(2) would reset.
func mountCgroup2(path string) error { return fsmount.Real{}.Mount("none", path, "cgroup2", "") }

var mountFlags = map[string]uintptr{"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC}

// inCgroup makes the cgroup anew; it is removed with the test.
func (m real) inCgroup(name string, f func()) {
	t := m.t
	t.Helper()
	hierarchy := filepath.Join(m.dir, "hierarchy")
	require.NoError(t, os.MkdirAll(hierarchy, 0o755))
	if len(m.Mounts(hierarchy)) == 0 {
		require.NoError(t, mountCgroup2(hierarchy))
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

func (real) Unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }

func (real) Pin(path string) error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer m.Close()
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), m.Pin(path))
}

func (m real) Hold(path string) (release func()) {
	f, err := os.Open(path)
	require.NoError(m.t, err)
	return func() { f.Close() }
}

func (m real) Mounts(path string) (types []string) {
	infos, err := mountinfo.Read()
	require.NoError(m.t, err)
	for _, i := range mountinfo.On(infos, path) {
		types = append(types, i.FSType)
	}
	return types
}
