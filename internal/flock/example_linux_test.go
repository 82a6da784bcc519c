// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/flock"
)

// Two runs on one node do not overlap: the second one waits, or says who is at
// work.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "acme.lock") // the zero value is one lock for the whole node

	ctx := context.Background()
	unlock, err := flock.File{Path: path, Owner: "pod-1"}.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	plan := bootstrap.Plan{Lock: flock.File{Path: path, Owner: "pod-2", Timeout: -1}.Lock} // does not wait
	_, err = plan.Apply(ctx)
	var held *flock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder.Owner)
	}
	if err := unlock(); err != nil {
		log.Fatal(err)
	}
	_, err = plan.Apply(ctx)
	fmt.Println(err)
	// Output:
	// held by pod-1
	// <nil>
}
