// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffstest_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/bpffs/bpffstest"
)

// A node on which somebody mounted a tmpfs where bpffs should be.
func ExampleKernel() {
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bpf")
	if err := os.Mkdir(path, 0o755); err != nil {
		fmt.Println(err)
		return
	}
	kernel := &bpffstest.Kernel{}
	fmt.Println(kernel.Put(path, "tmpfs", "nosuid"))
	m := bpffs.Mount{Path: path, Fallback: filepath.Join(dir, "fallback"), Kernel: kernel}
	fmt.Println(m.Apply(ctx))
	fmt.Println(kernel.Mounts(path), kernel.Mounts(m.Fallback))
	// Output:
	// <nil>
	// <nil>
	// [tmpfs] [bpf]
}
