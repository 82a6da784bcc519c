// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// check is what Plan.Check does with one step.
func (w *walk) check(ctx context.Context, s *Step) Result {
	if s.Absent {
		return w.checkRevert(ctx, s)
	}
	return w.onHost(ctx, s, func(ctx context.Context) Result {
		changes, err := s.Action.Check(ctx)
		if err != nil {
			r := s.result(Failed, "check", changes, err)
			v, ok := as[Validator](s.Action)
			r.certain = ok && v.Validate() != nil || w.hopeless(s, err)
			return r
		}
		if p, ok := as[PermissionChecker](s.Action); ok && (w.silent || os.Geteuid() == 0) && len(changes) > 0 {
			if err := p.CheckPermission(ctx); err != nil {
				denied := s.result(Failed, "check", nil, err)
				denied.certain = true
				return denied
			}
		}
		if w.silent {
			return foreseen(changes)
		}
		return s.advised(ctx, foreseen(changes))
	})
}

// onHost calls f where the step's objects are.
func (w *walk) onHost(ctx context.Context, s *Step, f func(context.Context) Result) (r Result) {
	err := w.enter(ctx, s, func(ctx context.Context) error {
		r = f(ctx)
		return nil
	})
	if err != nil {
		return s.result(Failed, "check", nil, err)
	}
	return r
}

// enter calls f in the namespaces of the step's objects, unless what the step makes would
// stay in a container.
func (w *walk) enter(ctx context.Context, s *Step, f func(context.Context) error) error {
	if places := s.places(); len(places) > 0 && w.plan.Host != nil {
		if err := w.plan.Host.CheckPlaces(places); err != nil {
			return err
		}
	}
	return w.plan.enter(ctx, s.namespaces(), f)
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
	r.Advice = append(r.Advice, advice...)
	return r
}

// apply is what Plan.Apply does with one step.
func (w *walk) apply(ctx context.Context, s *Step) Result {
	if s.Absent {
		return w.revert(ctx, s)
	}
	return w.onHost(ctx, s, func(ctx context.Context) Result { return w.applyHere(ctx, s) })
}

func (w *walk) applyHere(ctx context.Context, s *Step) Result {
	changes, err := s.Action.Check(ctx)
	if err != nil {
		return s.result(Failed, "check", changes, err)
	}
	if len(changes) == 0 {
		if own, ok := s.Action.(wanting); ok { // what is as wanted is claimed too
			if err := own.Apply(ctx); err != nil {
				return s.result(Failed, "apply", nil, err)
			}
		}
		return s.advised(ctx, Result{Status: Unchanged})
	}
	applying := w.recording(ctx, s) // what the check has asked does not count
	err = s.Action.Apply(applying)
	if err == nil {
		err = w.unrecorded(applying, s)
	}
	if err != nil {
		return s.result(Failed, "apply", madeOf(ctx, changes, s.Action.Check), err)
	}
	if s.SkipVerify {
		return s.advised(ctx, Result{Status: Changed, Changes: changes})
	}
	return s.advised(ctx, s.verify(ctx, changes, s.Action.Check))
}

// unrecorded returns an error if the action has recorded nothing of what it changed,
// although it says that it does.
func (w *walk) unrecorded(ctx context.Context, s *Step) error {
	r, ok := as[Recorder](s.Action)
	if !ok || len(r.Kinds()) == 0 || w.plan.Journal == nil || !s.recorded(w.plan.Host) || w.plan.Journal.Noted(ctx) {
		return nil
	}
	return fmt.Errorf("%w: a %T, although it declares that it records %s (its Apply must call Begin before each change, also one to an object that is recorded already, and get the journal by journal.From of the context that it is given)", ErrUnrecorded, s.Action, strings.Join(r.Kinds(), ", "))
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
func (w *walk) checkRevert(ctx context.Context, s *Step) (result Result) {
	r := w.reverter(s)
	defer func() { result.Advice = r.advice }()
	changes, err := r.CheckRevert(ctx)
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
func (w *walk) revert(ctx context.Context, s *Step) (result Result) {
	r := w.reverter(s)
	defer func() { result.Advice = r.advice }()
	changes, err := r.CheckRevert(ctx)
	switch {
	case isCannotSay(err), nothingToRevert(err):
		return s.revertBlind(ctx, r, changes)
	case err != nil && w.plan.Journal == nil:
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

// revertBlind reverts an action that cannot list beforehand what it would undo.
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

// onlyKept reports whether the step failed only because something is kept: others have
// changed it since.
func (r Result) onlyKept() bool {
	failure, ok := r.Err.(*StepError)
	return ok && isOnlyKept(failure.Err)
}

// keeping is such a result for a step that is no longer wanted: advice instead of a
// failure.
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

// revertAll is Plan.RevertAll and Plan.CheckRevertAll.
func (w *walk) revertAll(ctx context.Context) error {
	if w.plan.Ledger != nil {
		locked := w.locked
		if w.op == OpCheckRevert {
			locked = open
		}
		return locked(ctx, func(ctx context.Context) error { return w.undoLedger(ctx, w.op == OpCheckRevert) })
	}
	if w.plan.Journal == nil {
		return w.report.fail(errors.New("the plan has no journal, so nothing is recorded that could be undone"))
	}
	dryRun, locked := w.op == OpCheckRevert, w.locked
	if dryRun {
		locked = open
	}
	return locked(ctx, func(ctx context.Context) error {
		return w.inside(ctx, w.op, func(ctx context.Context) error { return w.undoAll(ctx, dryRun) })
	})
}

// undoAll undoes everything, and reports it by steps.
func (w *walk) undoAll(ctx context.Context, dryRun bool) error {
	steps, order := map[string]*Result{}, []string{}
	for _, s := range slices.Backward(w.plan.Steps) {
		steps[s.Name], order = &Result{Step: s.Name, Status: Unchanged}, append(order, s.Name)
	}
	done := Changed
	if dryRun {
		done = WouldChange
	}
	told := false
	err := w.plan.Journal.RevertAll(ctx, dryRun, func(step, change string, err error) {
		told = true
		r := steps[step]
		if r == nil {
			r = &Result{Step: step, Status: Unchanged}
			steps[step], order = r, append(order, step)
		}
		r.add(done, change, err)
	})
	if err != nil {
		w.report.fail(err)
	}
	if err != nil && !told {
		return err // it came before the first
	}
	errs := []error{err}
	for _, name := range order {
		r := steps[name].undone(string(w.op))
		w.done(ctx, r)
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}

// add adds the outcome of one entry to the result of its step. Text that several entries
// have in common appears once.
func (r *Result) add(done Status, change string, err error) {
	advice, err := adviceIn(err)
	r.Advice = append(r.Advice, advice...)
	if err != nil && (r.Err == nil || !slices.Contains(strings.Split(r.Err.Error(), "\n"), err.Error())) {
		r.Err = errors.Join(r.Err, err)
	}
	if change != "" && !slices.Contains(r.Changes, change) {
		r.Status, r.Changes = done, append(r.Changes, change)
	}
}

// undone completes the result of an undone step.
func (r Result) undone(op string) Result {
	if r.Err != nil {
		r.Status, r.Err = Failed, newStepError(r.Step, op, r.Err)
	}
	return r
}
