// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

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

func (r recorded) For(ctx context.Context, in cniinstall.Runtime, asked error) (placed recorded, err error) {
	placed.Journal = r.Journal
	placed.Install, err = r.Install.For(journal.With(ctx, r.Journal), in, asked)
	return placed, err
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Install.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Install.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Advise(ctx context.Context) ([]string, error) {
	return r.Install.Advise(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, cniinstall.Handler{ConfDir: r.ConfDir})
}

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, cniinstall.Handler{ConfDir: r.ConfDir})
}
