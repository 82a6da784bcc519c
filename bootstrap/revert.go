// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"slices"
)

// reverter returns what reverts everything about s.
func (w *walk) reverter(s *Step) undoer {
	u := undoer{journal: w.journal}
	if !s.Skip {
		u.action = s.Action
	}
	return u
}

// undoer reverts what a journal has recorded for the context's step, and then
// whatever else the action can revert.
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
	changes, recorded := u.journal.CheckRevert(ctx)
	more, own := checkRevert(ctx, u.action)
	for _, change := range more {
		if !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
	}
	return changes, both(recorded, own)
}

func (u undoer) Revert(ctx context.Context) error {
	if u.journal == nil {
		return revert(ctx, u.action)
	}
	recorded := u.journal.Revert(ctx)
	return both(recorded, revert(ctx, u.action))
}

// both joins the errors of the journal and of the action. If only one of them has
// nothing to revert, that is not a failure, and an error that both return appears
// once.
func both(recorded, own error) error {
	switch {
	case nothingToRevert(recorded):
		return own
	case nothingToRevert(own) && !isCannotSay(own), own != nil && recorded != nil && own.Error() == recorded.Error():
		return recorded
	}
	return errors.Join(recorded, own)
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
