// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"cmp"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// The main thread cannot be thrown away, and /proc/self shows its namespaces.
// Locking it to the main goroutine keeps tests, which have goroutines of their
// own, off it.
func init() { runtime.LockOSThread() }

func cloneFlags(ns Namespace) (flags int) {
	for kind, flag := range map[Namespace]int{
		Mount:  unix.CLONE_NEWNS | unix.CLONE_FS,
		Net:    unix.CLONE_NEWNET,
		Cgroup: unix.CLONE_NEWCGROUP,
		UTS:    unix.CLONE_NEWUTS,
		IPC:    unix.CLONE_NEWIPC,
	} {
		if ns&kind != 0 {
			flags |= flag
		}
	}
	return flags
}

// Root skips the test unless it runs as root with CAP_SYS_ADMIN.
func Root(t TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		t.Fatalf("capget: %v", err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		Skip(t, "needs CAP_SYS_ADMIN")
	}
}

// Enter moves the test's goroutine into new namespaces until the test ends.
func Enter(t TB, ns Namespace) {
	t.Helper()
	Root(t)
	runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
	flags := cloneFlags(ns)
	if err := unix.Unshare(flags); err != nil {
		t.Fatalf("unshare %#x: %v", flags, err)
	}
	if ns&Mount != 0 {
		if err := privateMounts(ns&Net != 0); err != nil {
			t.Fatal(err)
		}
	}
	if ns&Net != 0 {
		if err := loopbackUp(); err != nil {
			t.Fatal(err)
		}
	}
}

// privateMounts cuts the new mount namespace off from the machine's, and
// protects the machine's sysctls.
func privateMounts(ownNet bool) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return protectSysctls(ownNet)
}

// protectSysctls makes the machine's sysctls read-only: only those below net have
// a namespace.
func protectSysctls(ownNet bool) error {
	if err := mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if ownNet {
		if err := mount("/proc/sys/net", "/proc/sys/net", "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|hardened, ""); err != nil || !ownNet {
		return err
	}
	// In a container, /proc/sys was read-only before, and so are bind mounts of it.
	return mount("", "/proc/sys/net", "", unix.MS_BIND|unix.MS_REMOUNT|hardened, "")
}

const hardened = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

func mount(source, target, fstype string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s (needs CAP_SYS_ADMIN): %w", cmp.Or(fstype, source, "with other flags"), target, err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set lo up: socket: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("set lo up (needs CAP_NET_ADMIN): %w", err)
	}
	return nil
}

// TempDir returns a temporary directory for a test that mounts below it: at
// the end it is removed only after every mount below it was detached, so that
// nothing mounted there is ever deleted.
func TempDir(t TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := detachBelow(dir); err != nil {
			t.Errorf("%s is left in place: %v", dir, err)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func detachBelow(dir string) error {
	for {
		points, err := mountPointsBelow(dir)
		if err != nil || len(points) == 0 {
			return err
		}
		for i := len(points) - 1; i >= 0; i-- {
			if err := unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unmount %s: %w", points[i], err)
			}
		}
	}
}

func mountPointsBelow(dir string) ([]string, error) {
	mounts, err := mountinfo.Read()
	var points []string
	for _, m := range mounts {
		if mountinfo.Below(m.Point, dir) {
			points = append(points, m.Point)
		}
	}
	return points, err
}
