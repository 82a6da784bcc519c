// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package programs

import (
	"context"
	"errors"
	"fmt"
)

func lock(context.Context, string, func()) (unlock func() error, err error) {
	return nil, fmt.Errorf("lock a file: %w", errors.ErrUnsupported)
}
