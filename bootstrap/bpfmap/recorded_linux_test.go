// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// recorded is a Pinned with a journal but no plan.
type recorded struct {
	bpfmap.Pinned
	Journal *journal.Journal
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Pinned.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Pinned.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error { return r.Journal.Undo(ctx, bpfmap.Handler{}) }

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, bpfmap.Handler{})
}
