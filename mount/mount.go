// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package mount declares the type of the field Kernel of the mounts in the packages bpffs and
// cgroup. Leave the field nil for the running kernel: Linux 5.10
// or newer, on which mounting and unmounting need CAP_SYS_ADMIN. A test sets it to a
// bootstraptest.Kernel, which is one in memory, or to a type that embeds that. This package
// does nothing itself.
package mount

import "io/fs"

// Mounter is the part of a node's kernel that mounts, and shows what is mounted where. It
// is always called with absolute paths without symbolic links. Errors wrap the kernel's:
// they match fs.ErrNotExist for a path that is missing, EPERM without the capability, and
// ENODEV for a file system that the kernel does not have.
type Mounter interface {
	// Stat describes path, without following a symbolic link at its end: fstype is the
	// type of its file system, as in /proc/filesystems; mount identifies the mount of
	// which path is the top, or is "" if it is the top of none. For such a mount of
	// cgroup2, root is "/" if it shows the root of the calling thread's cgroup namespace,
	// and anything else if not.
	Stat(path string) (fstype, root, mount string, err error)

	// Mount creates a file system of type fstype, for which mountinfo is to show the
	// source, and attaches it to the directory target. The options are those of mount(8).
	// Mount never stacks: if a file system of the same type is there, also one of another
	// process that got there first, the error matches EBUSY.
	Mount(source, target, fstype, options string) error

	// Unmount takes the topmost mount off target. It returns EINVAL if nothing is mounted
	// there, and EBUSY if the mount is in use.
	Unmount(target string) error

	// Open opens a file or directory, such as /proc/thread-self/mountinfo.
	Open(name string) (fs.File, error)
}
