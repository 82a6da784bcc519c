// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package fsmount finds, makes and takes back the mounts of kernel file
// systems that a node needs, for the packages bpffs and cgroup.
//
// Everything acts in the mount and cgroup namespaces of the calling thread:
// mounts are read from /proc/thread-self, and no function starts a goroutine.
package fsmount

import "io/fs"

// Kernel is what of the kernel is called. [Real] is the running one; bpffs and
// cgroup declare the same methods, and bpffstest has a fake.
type Kernel interface {
	// Stat tells about path, without following a link at its end: the type of
	// the file system that it is on, which directory of that file system it is
	// (root: equal for two mounts of the same directory), and the identity of
	// the mount that it is the top of, "" if it is an ordinary directory.
	Stat(path string) (fstype, root, mount string, err error)

	// Mount makes a file system of the type, mounted nowhere yet, calls before
	// with its root and identity as Stat will tell them, and attaches it to
	// path. Both are "" where they cannot be known before (a seccomp profile
	// leaves nothing but mount(2)). An error of before ends it, and nothing is
	// attached. It never stacks: where a file system of the same type got there
	// first, the new one is dropped and the error matches EBUSY. Options are as
	// for mount(8).
	Mount(path, fstype, options string, before func(root, mount string) error) error

	// Unmount takes the topmost mount off path: EINVAL if path is no mount,
	// EBUSY if it is in use.
	Unmount(path string) error

	// Open opens a file or directory.
	Open(name string) (fs.File, error)
}

// Real is the running kernel.
type Real struct{}

// Or returns k, or the running kernel for nil.
func Or(k Kernel) Kernel {
	if k == nil {
		return Real{}
	}
	return k
}
