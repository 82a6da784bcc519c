// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cgroup"
)

// On a node Kernel stays nil, which means the running kernel; here it is a fake
// one, so that the example needs no root.
func ExampleMount() {
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	kernel := &bootstraptest.Kernel{}
	path := filepath.Join(dir, "cgroupv2")
	m := cgroup.Mount{Path: path, Kernel: kernel}
	fmt.Println(m.Apply(ctx), kernel.Mounts(path))

	// A container's cgroup namespace has another root.
	kernel.Cgroup = "/kubepods/pod1"
	_, err = m.Check(ctx)
	fmt.Println(bootstrap.Code(err))
	// Output:
	// <nil> [cgroup2]
	// cgroup.not-root
}
