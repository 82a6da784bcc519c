// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package durable

// Writable leaves it to the attempt.
func Writable(dir string) (nearest string, err error) { return dir, nil }
