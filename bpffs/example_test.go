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
	book, err := (&ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true}).Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer book.Close()
	ctx = ledger.With(ctx, book) // as a plan does
	wants, err := bpffs.Mount{Path: path, Kernel: kernel}.Wants(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	look, err := book.Check(ctx, "bpffs", wants)
	fmt.Println(len(look.Changes), err)
	_, err = book.Apply(ctx, "bpffs", wants)
	fmt.Println(err, kernel.Mounts(path))
	_, err = book.Undo(ctx, nil)
	fmt.Println(err, kernel.Mounts(path))
	// Output:
	// 2 <nil>
	// <nil> [bpf]
	// <nil> []
}
