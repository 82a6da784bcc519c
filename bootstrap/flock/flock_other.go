// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package flock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func (f File) lock(context.Context) (func() error, error) {
	return nil, fmt.Errorf("lock %s: not on %s: %w", f.Path, runtime.GOOS, errors.ErrUnsupported)
}
