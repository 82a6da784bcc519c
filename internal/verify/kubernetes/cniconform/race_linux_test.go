// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build race

package cniconform_test

import "github.com/sasha-s/go-deadlock"

// Under the race detector go-cni has its locks watched by a module that tells
// goroutines apart by a number which it cannot read in newer versions of Go.
func init() { deadlock.Opts.Disable = true }
