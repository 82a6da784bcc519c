// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build race

package cniconform_test

import "github.com/sasha-s/go-deadlock"

// Under the race detector, go-cni's locks are checked by a module that identifies goroutines by
// a number it cannot read in newer versions of Go.
func init() { deadlock.Opts.Disable = true }
