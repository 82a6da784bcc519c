// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// check is what Plan.Check does with one step.
func (w *walk) check(ctx context.Context, s *Step) Result {
	if s.Absent {
		return w.checkRevert(ctx, s)
	}
	changes, err := s.Action.Check(ctx)
	if err != nil {
		return s.result(Failed, "check", changes, err)
	}
	return s.advised(ctx, foreseen(changes))
}

// advised returns r with the action's advice added.
func (s *Step) advised(ctx context.Context, r Result) Result {
	adviser, ok := s.Action.(Adviser)
	if !ok || r.Status == Failed {
		return r
	}
	advice, err := adviser.Advise(ctx)
	if err != nil {
		advice = append(advice, "there may be more to say: "+err.Error())
	}
	r.Advice = advice
	return r
}

// apply is what Plan.Apply does with one step.
func (w *walk) apply(ctx context.Context, s *Step) Result {
	if s.Absent {
		return w.revert(ctx, s)
	}
	changes, err := s.Action.Check(ctx)
	if err != nil {
		return s.result(Failed, "check", changes, err)
	}
	if len(changes) == 0 {
		return Result{Status: Unchanged}
	}
	if err := s.Action.Apply(ctx); err != nil {
		return s.result(Failed, "apply", madeOf(ctx, changes, s.Action.Check), err)
	}
	if s.SkipVerify {
		return s.advised(ctx, Result{Status: Changed, Changes: changes})
	}
	return s.advised(ctx, s.verify(ctx, changes, s.Action.Check))
}

// verify checks the action again, after changes have been made.
func (s *Step) verify(ctx context.Context, changes []string, check func(context.Context) ([]string, error)) Result {
	left, err := check(ctx)
	if err != nil {
		return s.result(Failed, "verify", nil, err)
	}
	if len(left) > 0 {
		err := fmt.Errorf("%w: %s", ErrNotConverged, strings.Join(left, "; "))
		return s.result(Failed, "verify", made(changes, left), err)
	}
	return Result{Status: Changed, Changes: changes}
}

// madeOf returns those of the planned changes that were made by an Apply that
// failed; none if that cannot be told.
func madeOf(ctx context.Context, planned []string, check func(context.Context) ([]string, error)) []string {
	left, err := check(ctx)
	if err != nil && !isOnlyKept(err) {
		return nil
	}
	return made(planned, left)
}

// made returns the planned changes that are not left to do. If there is something
// left that was not planned, no more can be told of the others.
func made(planned, left []string) (out []string) {
	for _, change := range left {
		if !slices.Contains(planned, change) {
			return nil
		}
	}
	for _, change := range planned {
		if !slices.Contains(left, change) {
			out = append(out, change)
		}
	}
	return out
}

// checkRevert is what Plan.CheckRevert does with one step.
func (w *walk) checkRevert(ctx context.Context, s *Step) Result {
	changes, err := w.reverter(s).CheckRevert(ctx)
	switch {
	case isCannotSay(err):
		return s.result(Unknown, "revert", changes, err)
	case nothingToRevert(err):
		return s.result(Skipped, "revert", nil, err)
	case err != nil:
		return s.result(Failed, "check-revert", changes, err)
	}
	return foreseen(changes)
}

// revert is what Plan.Revert does with one step.
func (w *walk) revert(ctx context.Context, s *Step) Result {
	r := w.reverter(s)
	changes, err := r.CheckRevert(ctx)
	switch {
	case isCannotSay(err), nothingToRevert(err):
		return s.revertBlind(ctx, r, changes)
	case err != nil && w.journal == nil:
		return s.result(Failed, "check-revert", changes, err)
	}
	if err := r.Revert(ctx); err != nil {
		return s.result(notFor(err), "revert", madeOf(ctx, changes, r.CheckRevert), err)
	}
	after := s.verify(ctx, changes, r.CheckRevert)
	if after.Status == Changed && len(changes) == 0 {
		after.Status = Unchanged
	}
	return after
}

// revertBlind reverts an action that cannot say beforehand what it would undo.
func (s *Step) revertBlind(ctx context.Context, r Reverter, changes []string) Result {
	if err := r.Revert(ctx); err != nil {
		return s.result(notFor(err), "revert", changes, err)
	}
	return Result{Status: Changed, Changes: changes}
}

// notFor is the status of a Revert that returned an error.
func notFor(err error) Status {
	if nothingToRevert(err) {
		return Skipped
	}
	return Failed
}

// onlyKept reports whether the step failed for nothing else than that something is
// kept, since it belongs to somebody else by now.
func (r Result) onlyKept() bool {
	failure, ok := r.Err.(*StepError)
	return ok && isOnlyKept(failure.Err)
}

// keeping is such a result of a step that is no longer wanted: no failure, but worth
// saying.
func (r Result) keeping() Result {
	failure := r.Err.(*StepError)
	switch {
	case len(r.Changes) == 0:
		r.Status = Unchanged
	case failure.Op == "check-revert":
		r.Status = WouldChange
	default:
		r.Status = Changed
	}
	r.Advice, r.Err = append(r.Advice, strings.Split(failure.Err.Error(), "\n")...), nil
	return r
}

// foreseen is the result of a dry run.
func foreseen(changes []string) Result {
	if len(changes) == 0 {
		return Result{Status: Unchanged}
	}
	return Result{Status: WouldChange, Changes: changes}
}

func (s *Step) result(status Status, op string, changes []string, err error) Result {
	return Result{Status: status, Changes: changes, Err: newStepError(s.Name, op, err)}
}
