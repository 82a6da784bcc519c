// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package fsmount finds, makes and undoes the mounts of kernel file systems that a node
// needs, for the packages bpffs and cgroup.
//
// Everything acts in the mount and cgroup namespaces of the calling thread:
// mounts are read from /proc/thread-self, and no function starts a goroutine.
package fsmount

import "github.com/slipway-dev/slipway/mount"

var _ mount.Mounter = Real{}

// Real is the running kernel.
type Real struct{}

// Or returns k, or the running kernel for nil.
func Or(k mount.Mounter) mount.Mounter {
	if k == nil {
		return Real{}
	}
	return k
}
