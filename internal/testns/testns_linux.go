// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// The main thread cannot be thrown away, and /proc/self shows its namespaces.
// Locking it to the main goroutine keeps tests, which have goroutines of their
// own, off it.
func init() { runtime.LockOSThread() }

// flags are those of unshare(2).
var flags = map[Namespace]int{
	Mount:  unix.CLONE_NEWNS | unix.CLONE_FS,
	Net:    unix.CLONE_NEWNET,
	Cgroup: unix.CLONE_NEWCGROUP,
	UTS:    unix.CLONE_NEWUTS,
	IPC:    unix.CLONE_NEWIPC,
}

func cloneFlags(ns Namespace) (all int) {
	for kind, flag := range flags {
		if ns&kind != 0 {
			all |= flag
		}
	}
	return all
}

// Root skips the test unless it runs as root with CAP_SYS_ADMIN.
func Root(t TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	if len(remedy.Missing(remedy.SysAdmin)) > 0 {
		Skip(t, "needs CAP_SYS_ADMIN")
	}
}

// Enter moves the test's goroutine into new namespaces until the test ends.
func Enter(t TB, ns Namespace) {
	t.Helper()
	Root(t)
	runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
	err := os.NewSyscallError("unshare", unix.Unshare(cloneFlags(ns)))
	if err == nil && ns&Mount != 0 {
		err = privateMounts(ns&Net != 0)
	}
	if err == nil && ns&Net != 0 {
		err = loopbackUp()
	}
	if err != nil {
		t.Fatal(err)
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
	const all, own = "/proc/sys", "/proc/sys/net"
	err := mount(all, all, "", unix.MS_BIND, "")
	if err == nil && ownNet {
		err = mount(own, own, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = mount("", all, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|hardened, "")
	}
	if err == nil && ownNet { // in a container, /proc/sys was read-only before, and so are bind mounts of it
		err = mount("", own, "", unix.MS_BIND|unix.MS_REMOUNT|hardened, "")
	}
	return err
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
	if err == nil {
		defer unix.Close(fd)
		lo, _ := unix.NewIfreq("lo") // it errs for long names alone
		lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
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
		mounts, err := mountinfo.Read()
		below := slices.DeleteFunc(mounts, func(m mountinfo.Mount) bool { return !mountinfo.Below(m.Point, dir) })
		if err != nil || len(below) == 0 {
			return err
		}
		for _, m := range slices.Backward(below) {
			if err := unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unmount %s: %w", m.Point, err)
			}
		}
	}
}
