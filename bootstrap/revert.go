// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"slices"
)

// reverter is all that there is to revert about s.
func (w *walk) reverter(s *Step) undoer {
	u := undoer{journal: w.journal}
	if !s.Skip {
		u.action = s.Action
	}
	return u
}

// undoer reverts what a journal holds for the context's step, and then what the
// action itself names beyond that.
type undoer struct {
	journal Journal // may be nil
	action  Action  // may be nil, or no Reverter
}

func (undoer) Check(context.Context) ([]string, error) { return nil, nil }
func (undoer) Apply(context.Context) error             { return nil }

func (u undoer) CheckRevert(ctx context.Context) ([]string, error) {
	if u.journal == nil {
		return checkRevert(ctx, u.action)
	}
	changes, err := u.journal.CheckRevert(ctx)
	if err != nil {
		return changes, err
	}
	more, err := checkRevert(ctx, u.action)
	for _, change := range more {
		if !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
	}
	if nothingToRevert(err) && !isCannotSay(err) {
		err = nil // the journal says it
	}
	return changes, err
}

func (u undoer) Revert(ctx context.Context) error {
	if u.journal == nil {
		return revert(ctx, u.action)
	}
	if err := u.journal.Revert(ctx); err != nil {
		return err
	}
	if err := revert(ctx, u.action); !nothingToRevert(err) {
		return err
	}
	return nil
}

func checkRevert(ctx context.Context, a Action) ([]string, error) {
	if _, ok := a.(Reverter); !ok {
		return nil, errNoRevert
	}
	r, ok := a.(CheckReverter)
	if !ok {
		return nil, errNoCheckRevert
	}
	return r.CheckRevert(ctx)
}

func revert(ctx context.Context, a Action) error {
	r, ok := a.(Reverter)
	if !ok {
		return errNoRevert
	}
	return r.Revert(ctx)
}
