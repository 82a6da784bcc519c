// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

var errPlatform = fmt.Errorf("cleanup on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func (c Cleanup) inventory(context.Context, *owned) (*Inventory, error) {
	return &Inventory{}, errPlatform
}

func (c Cleanup) remove(context.Context, *owned, []Item) error { return errPlatform }

func (o Ownership) agentAlive() error { return errPlatform }
