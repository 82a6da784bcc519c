// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/testns"
)

const options = "nosuid,nodev,noexec"

// folder is on a file system of its own, in a mount namespace of the test.
func folder(t testing.TB) string {
	t.Helper()
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	return dir
}

func on(t testing.TB, path string) []fsmount.Info {
	t.Helper()
	infos, err := fsmount.Mounts(fsmount.Real{})
	require.NoError(t, err)
	return fsmount.On(infos, path)
}

func TestIdentityIsKnownBeforeTheMount(t *testing.T) {
	path := filepath.Join(folder(t), "bpf")
	require.NoError(t, os.Mkdir(path, 0o755))
	var k fsmount.Real
	var root, mount string
	require.NoError(t, k.Mount(path, "bpf", options, func(r, m string) error {
		require.Empty(t, on(t, path))
		root, mount = r, m
		return nil
	}))
	require.NotEmpty(t, mount)
	fstype, gotRoot, gotMount, err := k.Stat(path)
	require.NoError(t, err)
	require.Equal(t, []string{"bpf", root, mount}, []string{fstype, gotRoot, gotMount})

	require.NoError(t, k.Unmount(path))
	require.ErrorIs(t, k.Unmount(path), unix.EINVAL)
	require.NoError(t, k.Mount(path, "bpf", options, func(_, m string) error {
		require.NotEqual(t, mount, m)
		return nil
	}))
}

func TestAnErrorBeforeLeavesNothing(t *testing.T) {
	path := folder(t)
	no := errors.New("no")
	for _, k := range []fsmount.Real{{}, {Old: true}} {
		require.ErrorIs(t, k.Mount(path, "bpf", options, func(string, string) error { return no }), no)
		require.Len(t, on(t, path), 1)
	}
}

func TestUnknownFileSystem(t *testing.T) {
	path := folder(t)
	for _, k := range []fsmount.Real{{}, {Old: true}} {
		err := k.Mount(path, "slipwayfs", options, func(string, string) error { return nil })
		require.ErrorIs(t, err, unix.ENODEV)
	}
}

// Stat tells a mount from a directory also where statx does not (Linux before
// 5.8).
func TestMountRootWithoutStatx(t *testing.T) {
	dir := folder(t)
	bpf, inside, bind := filepath.Join(dir, "bpf"), filepath.Join(dir, "bpf", "inside"), filepath.Join(dir, "bind")
	require.NoError(t, os.Mkdir(bpf, 0o755))
	require.NoError(t, os.Mkdir(bind, 0o755))
	require.NoError(t, unix.Mount("bpf", bpf, "bpf", 0, ""))
	require.NoError(t, os.Mkdir(inside, 0o755))
	require.NoError(t, unix.Mount(inside, bind, "", unix.MS_BIND, ""))
	for path, want := range map[string]bool{dir: true, bpf: true, inside: false, bind: true, "/": true} {
		_, _, mount, err := fsmount.Real{}.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, mount != "", path)
		if path == "/" {
			continue
		}
		got, err := fsmount.Crosses(path)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
}

// Two that find nothing mounted and both mount: one stays.
func TestNeverStacks(t *testing.T) {
	for _, k := range []fsmount.Real{{}, {Old: true}} {
		t.Run("", func(t *testing.T) {
			path := filepath.Join(folder(t), "bpf")
			require.NoError(t, os.Mkdir(path, 0o755))
			var first string
			err := k.Mount(path, "bpf", options, func(string, string) error {
				require.NoError(t, k.Mount(path, "bpf", options, func(string, string) error { return nil }))
				_, _, mount, err := k.Stat(path)
				first = mount
				return err
			})
			require.ErrorIs(t, err, unix.EBUSY)
			_, _, mount, err := k.Stat(path)
			require.NoError(t, err)
			require.Equal(t, first, mount)
			require.Len(t, on(t, path), 1)
		})
	}
}

// Many at once, each on a thread of its own in the test's mount namespace.
func TestNeverStacksAtOnce(t *testing.T) {
	for _, k := range []fsmount.Real{{}, {Old: true}} {
		t.Run("", func(t *testing.T) { atOnce(t, k) })
	}
}

func atOnce(t *testing.T, k fsmount.Real) {
	dir := folder(t)
	ns, err := os.Open("/proc/thread-self/ns/mnt")
	require.NoError(t, err)
	defer ns.Close()
	for round := range 20 {
		path := filepath.Join(dir, "bpf", string(rune('a'+round)))
		require.NoError(t, os.MkdirAll(path, 0o755))
		const callers = 8
		errs := make(chan error, callers)
		var ready sync.WaitGroup
		ready.Add(callers)
		for range callers {
			go func() {
				runtime.LockOSThread()
				if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)); err != nil {
					ready.Done()
					errs <- err
					return
				}
				errs <- k.Mount(path, "bpf", options, func(string, string) error {
					ready.Done()
					ready.Wait()
					return nil
				})
			}()
		}
		won := 0
		for range callers {
			if err := <-errs; err == nil {
				won++
			} else {
				require.ErrorIs(t, err, unix.EBUSY)
			}
		}
		if !k.Old { // which one has won cannot be told there
			require.Equal(t, 1, won)
		}
		require.Len(t, on(t, path), 1)
	}
}

// A kernel, or a seccomp filter, that does not know fsopen answers ENOSYS or
// EPERM.
func TestWithoutTheNewCalls(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			path := folder(t)
			point := filepath.Join(path, "bpf")
			require.NoError(t, os.Mkdir(point, 0o755))
			refuseFsopen(t, errno)
			_, err := unix.Fsopen("bpf", 0)
			require.ErrorIs(t, err, errno)

			var k fsmount.Real
			require.NoError(t, k.Mount(point, "bpf", options, func(root, mount string) error {
				require.Empty(t, root+mount)
				return nil
			}))
			require.Len(t, on(t, point), 1)
			require.Subset(t, on(t, point)[0].Options, []string{"nosuid", "nodev", "noexec"})
		})
	}
}

// refuseFsopen installs a seccomp filter for the test's thread, which ends with
// the test.
func refuseFsopen(t testing.TB, errno unix.Errno) {
	t.Helper()
	const number = 0 // offset of the call's number in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_FSOPEN},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if failed != 0 {
		testns.Skip(t, "seccomp: "+failed.Error())
	}
}
