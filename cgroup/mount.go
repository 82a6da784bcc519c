// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cgroup mounts the cgroup v2 hierarchy with the host's root, tells
// how a node's cgroups are laid out, and names cgroups as eBPF programs see
// them.
//
// A cgroup2 mount shows the hierarchy from the root of the cgroup namespace of
// the thread that made it. An agent that attaches programs at the top of a
// mount made inside a container reaches that container only, so here a mount
// counts only if its top is the host's root. The host's root is the root of
// the calling thread's cgroup namespace: in a container, call from a thread
// that has entered the mount and cgroup namespaces of the host's pid 1
// (package bootstrap/hostns). Mounts, too, are those of the calling thread.
// Nothing starts a goroutine.
//
// Mounting needs CAP_SYS_ADMIN. The host's root is told exactly, by comparing
// device and inode with a cgroup2 that is mounted nowhere; without the
// capability, or where a seccomp profile refuses the calls for that, by the root
// that /proc/thread-self/mountinfo shows, for which /proc must be mounted.
//
// Errors name the path and, where the kernel refuses, what is missing; they
// wrap what the kernel answered. [ErrForeign] and [ErrNotRoot] are those to
// branch on. On other systems than Linux they match [errors.ErrUnsupported],
// unless [Mount.Kernel] is a fake (package bpffs/bpffstest).
//
// Do not use it to make, limit or remove cgroups.
package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// DefaultPath is where Mount mounts unless told otherwise: apart from the
// node's own /sys/fs/cgroup, which is cgroup2 on some nodes only. Cilium's
// agent looks there.
const DefaultPath = "/run/cilium/cgroupv2"

var (
	// ErrForeign says that another file system than cgroup2 is there.
	ErrForeign = errors.New("another file system is there")

	// ErrNotRoot says that a path shows a cgroup that is not the host's root.
	ErrNotRoot = errors.New("not the host's root cgroup")
)

const (
	fstype  = "cgroup2"
	kind    = "cgroup" // of entries in the journal
	options = "nosuid,nodev,noexec"
	// maxStacked is how many mounts Repair takes off one path.
	maxStacked = 16
)

// Kernel is what of the kernel is called, always by resolved paths. It has the
// methods of bpffs.Kernel; package bpffs/bpffstest has a fake that is both.
type Kernel interface {
	// Stat tells about path, without following a link at its end: the type of
	// the file system that it is on, as in /proc/filesystems; which directory
	// of that file system it is (root: equal for two mounts of the same
	// directory); and the identity of the mount that it is the top of, "" if
	// it is an ordinary directory.
	Stat(path string) (fstype, root, mount string, err error)

	// Mount makes a file system of the type, mounted nowhere yet, calls before
	// with its root as Stat will tell it, and attaches it to path. The root is ""
	// where it cannot be known before (a seccomp profile leaves nothing but
	// mount(2)). An error of before ends it, and nothing is attached. It never
	// stacks: where a file system of the same type got there first, the new one
	// is dropped and the error matches EBUSY. Options are as for mount(8), and
	// source=NAME is the source that mountinfo shows.
	Mount(path, fstype, options string, before func(root string) error) error

	// Unmount takes the topmost mount off path: EINVAL if path is no mount,
	// EBUSY if it is in use.
	Unmount(path string) error

	// Open opens a file or directory.
	Open(name string) (fs.File, error)
}

// EnsureMounted mounts cgroup2 on path as the zero [Mount] does, unless it is
// mounted there with the host's root. Nothing is recorded.
func EnsureMounted(path string) error {
	return Mount{Path: path}.Apply(context.Background())
}

// Mount is the state of a node that has cgroup2 mounted on a path with the
// host's root. It is a bootstrap.CheckReverter.
type Mount struct {
	// Path is where to mount; a relative path, "..", and symbolic links are
	// resolved first. Missing directories are made with mode 0755. Zero:
	// DefaultPath.
	Path string

	// Repair has a cgroup2 mounted on Path with another root unmounted and
	// mounted anew. It fails while that one is in use. Revert does not bring
	// that one back. Zero: such a mount is ErrNotRoot.
	Repair bool

	// Journal is where what Apply made is recorded, for Revert. Nil: nothing is
	// recorded.
	Journal *journal.Journal

	// Kernel is the kernel to ask. Zero: the running one.
	Kernel Kernel
}

// place is what was found on Path.
type place struct {
	fsmount.Place
	mounted bool // cgroup2 with the host's root
	wrong   bool // cgroup2 with another one, to be repaired
}

func (m Mount) look(ctx context.Context) (place, fsmount.Kernel, error) {
	k := fsmount.Or(m.Kernel)
	if err := ctx.Err(); err != nil {
		return place{}, k, err
	}
	p, err := fsmount.Look(k, cmp.Or(m.Path, DefaultPath))
	if err != nil {
		return place{}, k, fmt.Errorf("cgroup2: %w", err)
	}
	found := place{Place: p}
	if p.FSType != fstype {
		return found, k, foreign(k, p)
	}
	if p.Mount == "" {
		return found, k, fmt.Errorf("cgroup2 on %s: %w: it lies inside a cgroup2 mount (name the top of that, or a path outside)", p.Path, ErrNotRoot)
	}
	if found.mounted, err = isHostRoot(k, p); err != nil || found.mounted {
		return found, k, err
	}
	if found.wrong = m.Repair; !found.wrong {
		err = fmt.Errorf("cgroup2 on %s: %w: it was mounted from another cgroup namespace, such as a container's (unmount it, or ask for repair)", p.Path, ErrNotRoot)
	}
	return found, k, err
}

// foreign is an error if p holds another file system.
func foreign(k fsmount.Kernel, p fsmount.Place) error {
	occupant, err := p.Occupied(k)
	if err != nil {
		return fmt.Errorf("cgroup2 on %s: %w", p.Path, err)
	}
	if p.FSType == "cgroup" {
		occupant = "cgroup v1"
	}
	if occupant != "" {
		return fmt.Errorf("cgroup2 on %s: %w: %s (unmount it, or name another path)", p.Path, ErrForeign, occupant)
	}
	return nil
}

// errSeen ends the making of a mount that was only to be looked at.
var errSeen = errors.New("seen")

// isHostRoot reports whether the top of the cgroup2 mounted on p is the root
// of the thread's cgroup namespace.
func isHostRoot(k fsmount.Kernel, p fsmount.Place) (bool, error) {
	var host string
	err := k.Mount(p.Path, fstype, options, func(root string) error {
		host = root
		return errSeen
	})
	if !errors.Is(err, errSeen) {
		return false, fmt.Errorf("find the host's root cgroup: %w", err)
	}
	if host != "" {
		return p.Root == host, nil
	}
	infos, err := fsmount.Mounts(k)
	if err != nil {
		return false, fmt.Errorf("cgroup2 on %s: %w", p.Path, err)
	}
	on := mountinfo.On(infos, p.Path)
	return len(on) > 0 && on[len(on)-1].Whole(), nil
}

// Check lists what Apply would do.
func (m Mount) Check(ctx context.Context) (changes []string, err error) {
	p, k, err := m.look(ctx)
	switch {
	case err != nil || p.mounted:
		return nil, err
	case p.wrong:
		return []string{"mount cgroup2 anew on " + p.Path + " (it shows another cgroup than the host's root)"}, nil
	}
	if changes, err = p.Plan(k, "mount cgroup2"); err != nil {
		return nil, fmt.Errorf("cgroup2 on %s: %w", p.Path, err)
	}
	return changes, nil
}

// Apply mounts cgroup2 unless it is mounted with the host's root. Of several
// calls at once, also from several processes, one mounts and the others find
// it.
func (m Mount) Apply(ctx context.Context) error {
	p, k, err := m.look(ctx)
	if err != nil {
		return err
	}
	if p.mounted {
		return m.wrap(p, fsmount.Adopt(ctx, k, p.Place, m.request()))
	}
	r := m.request()
	if p.wrong {
		r.Clear = func(path string) error { return clearWrong(k, path) }
	}
	err = fsmount.Attach(ctx, k, p.Place, r)
	if errors.Is(err, syscall.EBUSY) {
		if again, _, lookErr := m.look(ctx); lookErr == nil && again.mounted {
			return nil // somebody else was first
		}
	}
	return m.wrap(p, err)
}

func (m Mount) request() fsmount.Request {
	return fsmount.Request{Kind: kind, Journal: m.Journal, FSType: fstype, Options: options}
}

// clearWrong takes the cgroup2 mounts off path, and nothing else.
func clearWrong(k fsmount.Kernel, path string) error {
	for range maxStacked {
		p, err := fsmount.Look(k, path)
		if err != nil || p.Mount == "" || p.FSType != fstype {
			return err
		}
		if err := k.Unmount(path); err != nil {
			return fmt.Errorf("unmount the cgroup2 with another root: %w (if it is busy, stop what uses it first)", err)
		}
	}
	return fmt.Errorf("more than %d mounts on one path", maxStacked)
}

func (m Mount) wrap(p place, err error) error {
	if err != nil {
		return fmt.Errorf("mount cgroup2 on %s: %w", p.Path, err)
	}
	return nil
}
