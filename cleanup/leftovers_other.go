// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

var errPlatform = fmt.Errorf("cleanup on %s: %w", runtime.GOOS, errors.ErrUnsupported)

type finder struct{}

func finders() []finder { return nil }

func policyRouting() []finder { return nil }

func (l Leftovers) inventory(context.Context, *owned, []finder) (*Inventory, error) {
	return &Inventory{}, errPlatform
}

func (l Leftovers) remove(context.Context, *owned, []Item) error { return errPlatform }

func (o Ownership) agentAlive(context.Context, *ledger.Book) error { return errPlatform }

func ciliumENITables(context.Context) ([]uint32, error) { return nil, errPlatform }
