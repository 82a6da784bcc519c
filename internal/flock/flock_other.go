// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package flock

import "context"

func (f File) lock(context.Context) (func() error, error) {
	return func() error { return nil }, nil
}
