// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import "github.com/slipway-dev/slipway/internal/verify/programs"

// lockMain runs nodeinit before its main function would, on the main thread, so that this
// thread makes all its sequential calls.
const lockMain = `package main

import (
	"os"
	"runtime"
)

func init() {
	runtime.LockOSThread()
	os.Exit(run()())
}
`

// Nodeinit builds the program for faults that are counted by thread.
var Nodeinit = programs.Program{
	Package: "./examples/nodeinit",
	Added:   map[string]string{"examples/nodeinit/lockmain.go": lockMain},
}
