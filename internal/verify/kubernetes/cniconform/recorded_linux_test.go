// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniconform_test

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
)

// recorded is an Install with a journal but no plan.
type recorded struct {
	cniinstall.Install
	Journal *journal.Journal
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Install.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, cniinstall.Handler{ConfDir: r.ConfDir})
}
