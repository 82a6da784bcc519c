// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cgroup mounts the cgroup v2 hierarchy with the host's root, detects the
// cgroup layout of a node, and returns the ids that eBPF programs use for cgroups.
//
// A cgroup2 mount shows the hierarchy from the root of the cgroup namespace of the
// thread that made it. Programs attached at the top of a mount made inside a
// container affect only that container. So this package accepts a mount only if its
// top is the host's root, which it takes to be the root of the calling thread's
// cgroup namespace: in a container, call from a thread that has entered the mount
// and cgroup namespaces of the host's pid 1 (package bootstrap/hostns). Mounts are
// looked up and made in the calling thread's mount namespace. The package starts no
// goroutines.
//
// Mounting needs CAP_SYS_ADMIN. A new mount keeps the options of the node's hierarchy,
// such as nsdelegate and memory_recursiveprot, which it would otherwise reset for every
// mount. Looking changes nothing and needs no capability: in the initial cgroup namespace,
// the host's root is inode 1; in any other, it is compared with a detached cgroup2 or, if
// none can be made, mountinfo decides. /proc must be mounted.
//
// Errors name the path and, if the kernel denies a call, the missing permission;
// they wrap the kernel's error. Callers can branch on [ErrForeign]; a
// mount of another root has the code cgroup.not-root. On systems other than Linux,
// errors match [errors.ErrUnsupported], unless [Mount.Kernel] is a fake (package bootstraptest).
//
// Do not use this package to make, limit or remove cgroups.
package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/mount"
)

var (
	// ErrForeign means that a file system other than cgroup2 is mounted on the
	// path.
	ErrForeign = code.New(code.CgroupForeign, "another file system is there")

	// errNotRoot means that a path shows a cgroup other than the host's root.
	errNotRoot = code.New(code.CgroupNotRoot, "not the host's root cgroup")
)

const fstype = "cgroup2"

// EnsureMounted mounts cgroup2 on path as a zero [Mount] would, unless it is
// already mounted there with the host's root. It records nothing.
func EnsureMounted(path string) error {
	if path == "" {
		return errors.New("mount cgroup2: no path given")
	}
	return Mount{Path: path}.Apply(context.Background())
}

// Mount is the state of a node that has cgroup2 mounted on a path with the host's
// root. In a plan it is what a step wants. The zero value is the node's own mount on
// /sys/fs/cgroup; on nodes where another file system, such as cgroup
// v1, is mounted there, it is ErrForeign.
type Mount struct {
	// Path is the path to mount on; relative paths, "..", and symbolic links are
	// resolved first. Missing directories are made with mode 0755. If empty, it is
	// /sys/fs/cgroup.
	Path string

	// Repair replaces a cgroup2 with another root that is mounted on Path: a new one is
	// made, the old mount is unmounted, which fails while it is in use, and the new one
	// attached, unless one with the host's root lay below. Undoing does not bring the old one
	// back. If false, such a mount is errNotRoot.
	Repair bool

	// Kernel is the kernel to call. If nil, it is the running one.
	Kernel mount.Mounter
}

// Kind is the kind of the mounts, for undoing what was recorded of them, whatever their paths
// are now. A mount is undone if it is visible and not in use.
var Kind = Mount{}.system().Kind()

func (m Mount) system() fsmount.System {
	return fsmount.System{Name: "cgroup", FSType: fstype, Kernel: m.Kernel}
}

// Wants wants a cgroup2 with the host's root on Path. What Repair replaces is no original: it
// does not come back.
func (m Mount) Wants(ctx context.Context) (ledger.Wants, error) {
	wants := m.system().Wants(ctx, cmp.Or(m.Path, root), ledger.State{}, m.ready)
	wants.List[len(wants.List)-1].OwnCopy = m.Repair
	return wants, nil
}

// ready returns why no cgroup2 with the host's root can be mounted at a place.
func (m Mount) ready(k mount.Mounter, p fsmount.Place) error {
	switch {
	case p.FSType != fstype:
		return p.Foreign(k, "cgroup2", ErrForeign)
	case p.Mount == "":
		return fmt.Errorf("cgroup2 on %s: %w: it lies inside a cgroup2 mount (name the top of that, or a path outside)", p.Path, errNotRoot)
	case !m.Repair:
		return fmt.Errorf("cgroup2 on %s: %w: it was mounted from another cgroup namespace, such as a container's (unmount it, or ask for repair)", p.Path, errNotRoot)
	}
	return nil
}

// Check lists the changes that Apply would make.
func (m Mount) Check(ctx context.Context) (changes []string, err error) { return ledger.Check(ctx, m) }

// Apply mounts cgroup2 unless it is mounted with the host's root, and records nothing. If
// several calls run at once, even in several processes, one of them mounts it and the others
// find that mount.
func (m Mount) Apply(ctx context.Context) error { return fsmount.Apply(ctx, m) }
