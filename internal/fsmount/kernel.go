// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package fsmount finds, makes and undoes the mounts of kernel file systems that a node
// needs, for the packages bpffs and cgroup.
//
// Everything acts in the mount and cgroup namespaces of the calling thread:
// mounts are read from /proc/thread-self, and no function starts a goroutine.
package fsmount

import "io/fs"

// Kernel is bpffs.Mounter, which documents each method for users; it is declared again
// here, since that package imports this one.
type Kernel interface {
	Stat(path string) (fstype, root, mount string, err error)
	Mount(path, fstype, options string, before func(root string) error) error
	Unmount(path string) error
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
