// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// An agent has installed its files and keeps them in place until it ends.
func ExampleGuard() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(node)
	install := cniinstall.Install{
		Plugins: fstest.MapFS{"my-cni": {Data: []byte("#!/bin/sh\n")}},
		BinDir:  filepath.Join(node, "bin"),
	}
	ctx, cancel := context.WithCancel(context.Background())
	book, err := (&ledger.Ledger{Dir: filepath.Join(node, "state"), Agent: "my-agent", NoOwner: true}).Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer book.Close()
	wants, err := install.Wants(ctx) // as a step of a plan does
	if err == nil {
		_, err = book.Apply(ctx, "cni", wants)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(filepath.Join(install.BinDir, "my-cni")); err != nil { // another program tidies up
		log.Fatal(err)
	}
	guard := cniinstall.Guard{
		Install: install, Step: "cni",
		Done: func(changes []string, _ error) {
			fmt.Println("repaired:", strings.ReplaceAll(strings.Join(changes, ", "), node, ""))
			cancel() // a real agent keeps running
		},
	}
	fmt.Println(errors.Is(guard.Run(ledger.With(ctx, book)), context.Canceled))
	// Output:
	// repaired: write file /bin/my-cni
	// true
}
