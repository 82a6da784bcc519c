// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testledger

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Step is a Wanter whose objects are recorded in a book, without a plan. A nil Book records
// nothing.
type Step struct {
	ledger.Wanter
	Book *ledger.Book
}

const stepName = "step"

// Check returns what Apply would change.
func (s Step) Check(ctx context.Context) ([]string, error) {
	wants, err := s.Wants(ledger.With(ctx, s.Book))
	if err != nil {
		return nil, err
	}
	look, err := s.Book.Check(ctx, stepName, wants)
	return look.Changes, err
}

// Apply brings the objects to the wanted states.
func (s Step) Apply(ctx context.Context) error {
	wants, err := s.Wants(ledger.With(ctx, s.Book))
	if err == nil {
		_, err = s.Book.Apply(ctx, stepName, wants)
	}
	return err
}

// CheckUndo returns what Undo would do.
func (s Step) CheckUndo(ctx context.Context) ([]string, error) {
	would, err := s.Book.CheckUndo(ctx, ledger.Undo{})
	return changes(would), err
}

// Undo undoes all that the book's agent has done.
func (s Step) Undo(ctx context.Context) error {
	_, err := s.Book.Undo(ctx, ledger.Undo{})
	return err
}

func changes(all []ledger.Undone) (lines []string) {
	for _, u := range all {
		if u.Change != "" && u.Err == nil {
			lines = append(lines, u.Change)
		}
	}
	return lines
}
