// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cniinstall

import (
	"context"
	"errors"
	"fmt"
)

func (g Guard) run(context.Context) error {
	return fmt.Errorf("watching folders needs Linux: %w", errors.ErrUnsupported)
}
