// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package record

// BootOf is for Linux: no other system tells which boot is running.
func BootOf(string) (string, error) { return "", nil }
