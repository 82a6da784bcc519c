// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
)

// recorded is a Mount with a journal but no plan.
type recorded struct {
	bpffs.Mount
	Journal *journal.Journal
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Mount.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Mount.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Advise(ctx context.Context) ([]string, error) {
	return r.Mount.Advise(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, bpffs.Handler{Kernel: r.Kernel})
}

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, bpffs.Handler{Kernel: r.Kernel})
}
