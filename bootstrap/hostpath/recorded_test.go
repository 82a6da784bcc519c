// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// recorded is a Paths with a journal but no plan.
type recorded struct {
	hostpath.Paths
	Journal *journal.Journal
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Paths.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Paths.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error { return r.Journal.Undo(ctx, hostpath.Handler{}) }

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, hostpath.Handler{})
}

// written is a Content with a journal but no plan.
type written struct {
	hostpath.Content
	Journal *journal.Journal
}

func (w written) Check(ctx context.Context) ([]string, error) {
	return w.Content.Check(journal.With(ctx, w.Journal))
}

func (w written) Apply(ctx context.Context) error {
	return w.Content.Apply(journal.With(ctx, w.Journal))
}

func (w written) Revert(ctx context.Context) error { return w.Journal.Undo(ctx, hostpath.Handler{}) }
