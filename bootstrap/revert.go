// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"slices"
)

// reverter returns what reverts everything about s.
func (w *walk) reverter(s *Step) *undoer {
	u := &undoer{journal: w.plan.Journal, enter: func(ctx context.Context, f func(context.Context) error) error {
		return w.enter(ctx, s, f)
	}}
	if !s.Skip && (s.Absent || !s.NoUndo) {
		u.action = s.Action
	}
	return u
}

// undoer reverts what a journal has recorded for the context's step, and then
// whatever else the action can revert.
type undoer struct {
	journal Journal // may be nil
	action  Action  // may be nil, or no Reverter
	enter   func(context.Context, func(context.Context) error) error
	advice  []string // what the journal said last that is no failure
}

func (*undoer) Check(context.Context) ([]string, error) { return nil, nil }
func (*undoer) Apply(context.Context) error             { return nil }

func (u *undoer) CheckRevert(ctx context.Context) ([]string, error) {
	if u.journal == nil {
		return u.checkOwn(ctx)
	}
	changes, recorded := u.journal.CheckRevert(ctx)
	u.advice, recorded = adviceIn(recorded)
	more, own := u.checkOwn(ctx)
	for _, change := range more {
		if !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
	}
	return changes, both(recorded, own)
}

func (u *undoer) Revert(ctx context.Context) error {
	if u.journal == nil {
		return u.revertOwn(ctx)
	}
	recorded := u.journal.Revert(ctx)
	u.advice, recorded = adviceIn(recorded)
	return both(recorded, u.revertOwn(ctx))
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

// checkOwn says what the action itself would revert.
func (u *undoer) checkOwn(ctx context.Context) (changes []string, err error) {
	if _, ok := u.action.(Reverter); !ok {
		return nil, errNoRevert
	}
	r, ok := u.action.(CheckReverter)
	if !ok {
		return nil, errNoCheckRevert
	}
	err = u.enter(ctx, func(ctx context.Context) (err error) {
		changes, err = r.CheckRevert(ctx)
		return err
	})
	return changes, err
}

// revertOwn has the action revert what it can.
func (u *undoer) revertOwn(ctx context.Context) error {
	r, ok := u.action.(Reverter)
	if !ok {
		return errNoRevert
	}
	return u.enter(ctx, r.Revert)
}
