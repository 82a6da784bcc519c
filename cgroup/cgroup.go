// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup

import (
	"cmp"
	"errors"
	"os"
)

// root is the path on which a node's cgroups are mounted.
const root = "/sys/fs/cgroup"

// Layout is the set of cgroup versions that a node has mounted, as systemd names it.
type Layout string

// The layouts.
const (
	V1      Layout = "v1"      // each controller in its own hierarchy, no cgroup2
	Hybrid  Layout = "hybrid"  // V1 plus cgroup2 in the directory "unified"
	Unified Layout = "unified" // only cgroup2
)

// Detect returns the layout of the cgroups on path (if empty, /sys/fs/cgroup), by the types
// of the file systems mounted there: either cgroup2 itself, or a tmpfs with v1
// hierarchies in it, with or without a cgroup2 called "unified". Anything else is
// an error.
func Detect(path string) (Layout, error) { return detect(cmp.Or(path, root)) }

// ID returns the id of the cgroup v2 at path, as bpf_get_current_cgroup_id and the
// kernel's trace events report it. It is the same through every mount.
func ID(path string) (uint64, error) {
	if path == "" {
		return 0, errNoPath
	}
	return id(path)
}

// Open opens the cgroup v2 directory at path, to attach eBPF programs to it. If the
// directory is on another file system, the error matches ErrForeign.
func Open(path string) (*os.File, error) {
	if path == "" {
		return nil, errNoPath
	}
	return open(path)
}

var errNoPath = errors.New("cgroup: no path given")
