// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// recorded is a Dir with a journal but no plan.
type recorded struct {
	configdir.Writer
	Journal *journal.Journal
}

// newRecorded is one in root/d, with its journal in root/state.
func newRecorded(t *testing.T, root string, v values) recorded {
	t.Helper()
	return recorded{configdir.Writer{Path: filepath.Join(root, "d"), Config: config(t, v)}, journaltest.Open(t, filepath.Join(root, "state"))}
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Writer.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Writer.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error { return r.Journal.Undo(ctx, configdir.Handler{}) }

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, configdir.Handler{})
}

func (r recorded) applyStep(ctx context.Context, step func(string)) error {
	return configdir.ApplyStep(journal.With(ctx, r.Journal), r.Writer, step)
}

func (r recorded) revertStep(ctx context.Context, step func(string)) error {
	return configdir.RevertStep(journal.With(ctx, r.Journal), step)
}
