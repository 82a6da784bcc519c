// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
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
	path := filepath.Join(dir, "bpf")
	j, err := (&journal.Node{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	m := recorded{bpffs.Mount{Path: path, Kernel: kernel}, j.Step("bpffs")}

	changes, err := m.Check(ctx)
	fmt.Println(len(changes), err)
	fmt.Println(m.Apply(ctx), kernel.Mounts(path))
	changes, err = m.Check(ctx)
	fmt.Println(len(changes), err)
	fmt.Println(m.Undo(ctx), kernel.Mounts(path))
	// Output:
	// 2 <nil>
	// <nil> [bpf]
	// 0 <nil>
	// <nil> []
}
