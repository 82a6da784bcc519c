// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package testns makes Linux namespaces that are used once and thrown away, so
// that a test or the demonstration can use the real kernel as root and leave
// nothing behind: [Enter] gives them to a test's own thread, [Process] to a process that
// only waits, and [StartNode] makes a whole node of them. It is neither a container
// runtime nor a sandbox.
//
// # A thread
//
// [Enter] locks the test's goroutine to its OS thread and gives that thread
// namespaces of its own; the thread dies with the goroutine, and with it every
// mount and link that the test made. Goroutines and subtests are outside: each t.Run
// calls Enter itself. Programs run by the test (os/exec) are inside. It needs root with
// CAP_SYS_ADMIN; without, a test skips, or fails if SLIPWAY_TEST_REQUIRE_ROOT=1 is set.
//
// # A node
//
// A [Node] is what bootstraptest.Node describes, without a test: its pid 1 is a shell that
// waits, in new mount, net, cgroup, pid, uts and ipc namespaces; its root is a new tmpfs
// with a /proc, /sys, /dev and cgroup2 of its own, and the machine's other directories. Mounts
// are shared within the node, as on a host that runs systemd, and private against the
// machine. lo is up; there is no other link.
//
// It needs root with the capabilities SYS_ADMIN, SYS_CHROOT, NET_ADMIN and MKNOD,
// a mounted cgroup2 that may be written to, the programs sh(1), mount(8) and cp(1), and
// a root file system that is not the initramfs, which pivot_root(2) cannot
// leave. Elsewhere StartNode returns an error matching [errors.ErrUnsupported].
//
// # Effect on the program
//
// In a program that links the package, the main goroutine is locked to the main thread
// from the start, as with [runtime.LockOSThread]: the main thread cannot be thrown away.
package testns

import (
	"os"
	"path/filepath"
)

// Namespace is a set of kinds of namespaces.
type Namespace uint8

// The kinds of namespaces, as [Enter] makes them.
const (
	Mount  Namespace = 1 << iota // mounts are private; /proc/sys is read-only, except net under Net
	Net                          // lo is up
	Cgroup                       // rooted at the cgroup that the test process is in
	UTS
	IPC
	Peers // for [Process], in place of Mount: the mounts remain peers of the test's
)

// Proc returns a directory in which target, such as /proc/self, is pid 1: it is the Proc
// of a hostns.Host that is target's node.
func Proc(t TB, target string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(target, filepath.Join(dir, "1")); err != nil {
		t.Fatal(err)
	}
	return dir
}
