// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import "github.com/slipway-dev/slipway/internal/verify/programs"

// Nodeinit is the program for faults that are counted by thread: one more file keeps
// main, and with it all that nodeinit does in turn, on one thread.
var Nodeinit = programs.Program{
	Package: "./examples/nodeinit",
	Added:   map[string]string{"examples/nodeinit/lockmain.go": "package main\n\nimport \"runtime\"\n\nfunc init() { runtime.LockOSThread() }\n"},
}
