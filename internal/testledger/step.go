// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testledger

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Step is a step that a book records, without a plan.
type Step struct {
	ledger.Wanter
	Book *ledger.Book
}

// StepName is the name of a [Step].
const StepName = "step"

// Check lists what Apply would change.
func (s Step) Check(ctx context.Context) (changes []string, err error) {
	ctx = ledger.With(ctx, s.Book)
	wants, err := s.Wants(ctx)
	if err != nil {
		return nil, err
	}
	look, err := s.Book.Check(ctx, StepName, wants)
	return look.Changes, err
}

// Apply makes the step's objects as wanted.
func (s Step) Apply(ctx context.Context) error {
	ctx = ledger.With(ctx, s.Book)
	wants, err := s.Wants(ctx)
	if err != nil {
		return err
	}
	_, err = s.Book.Apply(ctx, StepName, wants)
	return err
}

// CheckUndo lists what Undo would change.
func (s Step) CheckUndo(ctx context.Context) (changes []string, err error) {
	would, err := s.Book.CheckUndo(ledger.With(ctx, s.Book), nil)
	for _, u := range would {
		if u.Err == nil && u.Change != "" {
			changes = append(changes, u.Change)
		}
	}
	return changes, err
}

// Undo undoes all that the book records.
func (s Step) Undo(ctx context.Context) error {
	_, err := s.Book.Undo(ledger.With(ctx, s.Book), nil)
	return err
}

// Records lists the names of the recorded objects.
func (s Step) Records(t testing.TB) (objects []string) {
	t.Helper()
	status, err := s.Book.Status(t.Context())
	require.NoError(t, err)
	for _, r := range status.Records {
		objects = append(objects, r.Object)
	}
	return objects
}

// Changes lists what a step that is used alone would change.
func Changes(t testing.TB, alone interface {
	Check(ctx context.Context) ([]string, error)
}) []string {
	t.Helper()
	changes, err := alone.Check(t.Context())
	require.NoError(t, err)
	return changes
}
