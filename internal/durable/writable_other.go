// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package durable

// Writable returns no error: the attempt to write decides.
func Writable(dir string) (nearest string, err error) { return dir, nil }

// ReadOnly reports false: the attempt to write decides.
func (d *Dir) ReadOnly() bool { return false }
