// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"errors"
	"io/fs"
	"sync"
)

// Kernel is a node's kernel in memory, just booted, for tests that need neither
// root nor Linux. It stands in for the real one as bpffs.Mount.Kernel, as
// cgroup.Mount.Kernel and as sysctl.Kernel.Files: one value serves all of a plan's mounts
// and values. Cleanup, preflight and kernel modules have no stand-in and act on the
// machine: set Skip for their steps.
// The zero value has the link lo; [NewKernel] adds others. A nil Kernel answers each call
// of an action with an error.
//
// It keeps mounts as the kernel does: a stack for each path, unique identities, and
// EINVAL, EBUSY, ENOENT, ENOTDIR and ENODEV as the kernel returns them. Paths are real
// directories, such as those of testing.T.TempDir; mounts, pins and holds there exist
// only in the Kernel. Files outside its mounts are the real ones. It does not support
// symbolic links at the end of a path, mounts moved or bound by others, or more than one
// mount namespace.
//
// It has a few of a real kernel's values, and imitates the kernel where that makes a
// difference: it prints tabs for blanks, refuses values that are not numbers, rewrites
// every link's forwarding when the global one changes, drops learnt IPv6 default routes,
// makes and removes the keys of links, and never takes back
// kernel.unprivileged_bpf_disabled = 1.
//
// It implements no capabilities and no file modes: [Kernel.Fail] refuses in their place.
// For everything else use the real kernel, on a [Node].
//
// It may be used by several goroutines at once; its fields may not be changed
// meanwhile.
type Kernel struct {
	// Fail, if not nil, is called before each call is carried out. If it returns an
	// error, such as syscall.EPERM, the call fails with that. The calls and their
	// subjects:
	//
	//	statx, open, mount, umount    the path
	//	open, read, write, readdir    the value or directory below /proc/sys;
	//	                              read also /proc/net/ipv6_route
	Fail func(op, path string) error

	// Private makes the node's mounts those of a container: not shared.
	Private bool

	// Cgroup is the cgroup that the caller's cgroup namespace has as its root.
	// Zero: "/".
	Cgroup string

	mu     sync.Mutex
	mounts []*mount // oldest first
	last   int      // last identity

	boots   int
	values  map[string]string // by path below /proc/sys; nil: not booted yet
	deaf    map[string]bool   // paths of values
	routers []string
	indexes map[string]int // of links
	newest  int            // index
	writes  []string
}

// NewKernel returns a kernel with the link lo and the given ones.
func NewKernel(links ...string) *Kernel {
	k := &Kernel{}
	k.boot(append([]string{"lo"}, links...))
	return k
}

// Reboot starts the kernel anew: nothing is mounted, every value has its default,
// and the boot id changes: give a plan's ledger.Ledger the new one, which is
// kernel.random.boot_id in Values, as Boot. Links stay.
func (k *Kernel) Reboot() {
	defer k.lock()()
	k.mounts = nil
	k.boot(k.links())
}

// lock excludes others until unlock, and boots the zero value.
func (k *Kernel) lock() (unlock func()) {
	k.mu.Lock()
	if k.values == nil {
		k.boot([]string{"lo"})
	}
	return k.mu.Unlock
}

// refused calls Fail, without the lock held. A nil Kernel, which the field of an action may
// hold, refuses everything.
func (k *Kernel) refused(op, path string) (err error) {
	switch {
	case k == nil:
		err = errors.New("the kernel is a nil *bootstraptest.Kernel")
	case k.Fail != nil:
		err = k.Fail(op, path)
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}
