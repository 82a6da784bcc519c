// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bpffs"
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
	m := bpffs.Mount{Path: filepath.Join(dir, "bpf"), Kernel: kernel}

	changes, err := m.Check(ctx)
	fmt.Println(len(changes), err)
	fmt.Println(m.Apply(ctx), kernel.Mounts(m.Path))
	changes, err = m.Check(ctx)
	fmt.Println(len(changes), err)
	// Output:
	// 2 <nil>
	// <nil> [bpf]
	// 0 <nil>
}
