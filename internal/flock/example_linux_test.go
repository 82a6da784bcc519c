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

	"github.com/slipway-dev/slipway/internal/flock"
)

// Two runs on one node do not overlap: the second one waits, or names the holder.
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
	second := flock.File{Path: path, Owner: "pod-2", Timeout: -1} // does not wait
	_, err = second.Lock(ctx)
	var held *flock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder.Owner)
	}
	if err := unlock(); err != nil {
		log.Fatal(err)
	}
	unlock, err = second.Lock(ctx)
	fmt.Println(err)
	if err := unlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// held by pod-1
	// <nil>
}
