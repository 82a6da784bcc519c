// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup

import (
	"cmp"
	"os"
	"strconv"
)

// Root is where a node's cgroups are mounted.
const Root = "/sys/fs/cgroup"

// Layout is how a node's cgroups are mounted.
type Layout uint8

// The layouts, as systemd names them.
const (
	V1      Layout = 1 + iota // controllers in hierarchies of their own, no cgroup2 beside them
	Hybrid                    // as V1, and cgroup2 in the directory "unified"
	Unified                   // cgroup2 alone
)

// String names the layout.
func (l Layout) String() string {
	switch l {
	case V1:
		return "v1"
	case Hybrid:
		return "hybrid"
	case Unified:
		return "unified"
	}
	return "Layout(" + strconv.Itoa(int(l)) + ")"
}

// Detect tells how cgroups are mounted on path ("": [Root]), by the types of the
// file systems there: cgroup2 itself, or a tmpfs that holds v1 hierarchies with
// or without a cgroup2 called "unified". Anything else is an error.
func Detect(path string) (Layout, error) { return detect(cmp.Or(path, Root)) }

// ID returns the id of the cgroup v2 at path, as bpf_get_current_cgroup_id and
// the kernel's trace events have it. It is the same through every mount.
func ID(path string) (uint64, error) { return id(path) }

// Open opens the cgroup v2 directory at path, to attach eBPF programs to it. A
// directory of another file system is ErrForeign.
func Open(path string) (*os.File, error) { return open(path) }
