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

// Detect returns the layout of the cgroups on path (if empty, /sys/fs/cgroup), as systemd names
// it, by the types of the file systems mounted there: "unified" is cgroup2 itself, and "v1" a
// tmpfs with v1 hierarchies in it, or "hybrid" if a cgroup2 called "unified" is beside them.
// Anything else is an error.
func Detect(path string) (layout string, err error) { return detect(cmp.Or(path, root)) }

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
