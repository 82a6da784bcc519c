// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// lockMain keeps main, and with it all that nodeinit does in turn, on one thread.
const lockMain = `package main

import "runtime"

func init() { runtime.LockOSThread() }
`

// Build compiles nodeinit for faults that are counted by thread.
func Build(ctx context.Context) (binary string, err error) {
	return programs.Program{Package: "./examples/nodeinit", Added: map[string]string{"examples/nodeinit/lockmain.go": lockMain}}.Build(ctx)
}
