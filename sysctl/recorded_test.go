// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/sysctl"
)

// recordedFile is a DropIn with a journal but no plan.
type recordedFile struct {
	sysctl.DropIn
	Journal *journal.Journal
}

func (r recordedFile) Check(ctx context.Context) ([]string, error) {
	return r.DropIn.Check(journal.With(ctx, r.Journal))
}

func (r recordedFile) Apply(ctx context.Context) error {
	return r.DropIn.Apply(journal.With(ctx, r.Journal))
}

func (r recordedFile) Advise(ctx context.Context) ([]string, error) {
	return r.DropIn.Advise(journal.With(ctx, r.Journal))
}

func (r recordedFile) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, sysctl.Handler{Kernel: r.Kernel})
}

func (r recordedFile) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, sysctl.Handler{Kernel: r.Kernel})
}

// recordedValues is a Settings with a journal but no plan.
type recordedValues struct {
	sysctl.Settings
	Journal *journal.Journal
}

func (r recordedValues) Check(ctx context.Context) ([]string, error) {
	return r.Settings.Check(journal.With(ctx, r.Journal))
}

func (r recordedValues) Apply(ctx context.Context) error {
	return r.Settings.Apply(journal.With(ctx, r.Journal))
}

func (r recordedValues) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, sysctl.Handler{Kernel: r.Kernel})
}

func (r recordedValues) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, sysctl.Handler{Kernel: r.Kernel})
}
