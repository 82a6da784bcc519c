// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package record

// bootOf is for Linux: no other system tells which boot is running.
func bootOf(string) (string, error) { return "", nil }
