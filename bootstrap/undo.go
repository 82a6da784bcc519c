// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// undoing is the undoing of several steps, or the look at what that would change.
type undoing struct {
	*walk
	isDry     bool
	isRefused bool // sandboxes need a part of it: nothing is undone
	isAbsent  bool // the steps are no longer wanted: what stays is advice
	results   []*undone
	err       error // of the ledger itself
}

// undone is what becomes of one step.
type undone struct {
	Result
	step *Step           // one without an action, if it is not in the plan
	ctx  context.Context // of its hooks; nil: it has not started
	errs []error
}

// undo undoes steps in this order, or says what that would change. If all is set, it undoes
// whatever else is recorded for the agent, too.
func (w *walk) undo(ctx context.Context, steps []Step, all bool) error {
	switch {
	case len(steps) == 0 && !all:
		return nil
	case len(steps) > 0 && ctx.Err() != nil:
		return w.cutShort(ctx, &steps[0])
	}
	u := &undoing{walk: w, isDry: w.op == opCheck || w.op == opCheckRevert, isAbsent: !w.reverts()}
	for i := range steps {
		o := u.of(steps[i].Name)
		o.step, o.ctx = &steps[i], w.start(ctx, steps[i].Name)
	}
	within, wait := waiting.On(ctx, "what is recorded to be undone")
	w.learnKinds(within)
	if all && u.isInUse(within) {
		u.isDry, u.isRefused = true, true
	}
	u.undoInTurn(within, all)
	wait.End()
	return u.finish(ctx)
}

// isInUse reports whether sandboxes need something of the agent for their deletion.
func (u *undoing) isInUse(ctx context.Context) (is bool) {
	_ = u.plan.Host.Do(ctx, everywhere, func(ctx context.Context) error { // its error comes again
		would, err := u.book.CheckUndo(ctx, nil)
		is = slices.ContainsFunc(would, func(o ledger.Undone) bool { return code.Of(o.Err) == code.CNIInUse })
		return err
	})
	return is
}

// of returns what becomes of the named step.
func (u *undoing) of(step string) *undone {
	i := slices.IndexFunc(u.results, func(o *undone) bool { return o.Step == step })
	if i < 0 {
		i = len(u.results)
		u.results = append(u.results, &undone{Result: Result{Step: step, Status: Unchanged}, step: &Step{Name: step}})
	}
	return u.results[i]
}

// undoInTurn undoes what is recorded for the steps before each action that has an Undo, and
// at the end. What stayed before is tried again: what needed it may have gone.
func (u *undoing) undoInTurn(ctx context.Context, all bool) {
	names := []string{}
	for _, o := range slices.Clone(u.results) {
		names = append(names, o.Step)
		if o.step.undoer() == nil {
			continue
		}
		if !u.isDry {
			u.undoRecorded(ctx, names)
		}
		u.undoAction(o)
	}
	if all {
		names = nil
	}
	u.undoRecorded(ctx, names)
}

// undoRecorded undoes what is recorded for steps; nil: for all, and then what is recorded of
// containers that have gone is dropped.
func (u *undoing) undoRecorded(ctx context.Context, steps []string) {
	if u.book == nil {
		return
	}
	for _, o := range u.results {
		o.Advice, o.Diff, o.errs = nil, "", nil
	}
	u.err = u.plan.Host.Do(ctx, everywhere, func(ctx context.Context) error {
		return u.undoIn(ctx, u.book, steps)
	})
	if u.plan.Host.Proc == "" && steps != nil {
		return
	}
	local, err := u.local()
	if err == nil {
		err = u.undoIn(ctx, local, steps)
	}
	u.err = errors.Join(u.err, err)
}

// undoIn undoes what is recorded in a view of the ledger. What was only changed along with
// another object belongs to that one's step.
func (u *undoing) undoIn(ctx context.Context, book *ledger.Book, steps []string) error {
	undo := book.Undo
	if u.isDry {
		undo = book.CheckUndo
	}
	differences := map[string]string{}
	ctx = u.differing(ctx, func(object, difference string) { differences[object] += difference })
	objects, err := undo(ctx, steps)
	step := "other steps"
	for _, object := range objects {
		if step = cmp.Or(object.Step, step); object.Step != "" && u.plan.Ledger.AllAgents {
			step = object.Agent + "/" + object.Step
		}
		o := u.of(step)
		o.Elapsed += object.Elapsed
		o.Diff += differences[object.Object]
		delete(differences, object.Object)
		err := o.addUndone([]ledger.Undone{object}, object.Err, u.isAbsent)
		if err != nil && !slices.ContainsFunc(o.errs, func(other error) bool { return other.Error() == err.Error() }) {
			o.errs = append(o.errs, err)
		}
	}
	return without(err, objects)
}

// addUndone adds what became of objects to r, and returns what remains of err. That an object
// is still needed is advice, as is what err does not have and, if stays is, that others have changed it.
func (r *Result) addUndone(objects []ledger.Undone, err error, staysIsAdvice bool) error {
	for _, o := range objects {
		isNeeded, isChanged := errors.Is(o.Err, ledger.ErrNeeded), errors.Is(o.Err, ledger.ErrChanged)
		switch isNoFailure := o.Err != nil && !errors.Is(err, o.Err); {
		case isNeeded, isNoFailure, isChanged && staysIsAdvice:
			r.Advice = addOnce(r.Advice, o.Err.Error())
			err = without(err, []ledger.Undone{o})
		case o.Err != nil:
		case o.Stays:
			r.Advice = addOnce(r.Advice, o.Change)
		case o.Change != "":
			r.Changes = addOnce(r.Changes, o.Change)
		}
	}
	return err
}

func addOnce(lines []string, line string) []string {
	if slices.Contains(lines, line) {
		return lines
	}
	return append(lines, line)
}

// without returns err without those that are joined in it and are of the objects.
func without(err error, objects []ledger.Undone) error {
	if err == nil || slices.ContainsFunc(objects, func(o ledger.Undone) bool { return o.Err == err }) {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return err
	}
	var rest []error
	for _, err := range joined.Unwrap() {
		rest = append(rest, without(err, objects))
	}
	return errors.Join(rest...)
}

// undoAction calls the action's Undo, unless it is a dry run or there is nothing to undo.
func (u *undoing) undoAction(o *undone) {
	start := time.Now()
	undo := func(_ *walk, ctx context.Context, s *Step) Result {
		changes, err := s.undoer().CheckUndo(ctx)
		if err == nil && len(changes) > 0 && !u.isDry {
			err = s.undoer().Undo(ctx)
		}
		if err != nil {
			return s.failed("revert", nil, err)
		}
		return Result{Changes: changes}
	}
	done := bounded(o.ctx, o.step, func(ctx context.Context) Result { return u.onItsSide(ctx, o.step, undo) })
	o.Err, o.Elapsed = done.Err, o.Elapsed+time.Since(start)
	o.Changes = append(o.Changes, done.Changes...)
}

// finish reports what became of each step. The error joins those that count.
func (u *undoing) finish(ctx context.Context) error {
	var errs []error
	for _, o := range u.results {
		if o.ctx == nil {
			o.ctx = u.start(ctx, o.Step)
		}
		u.conclude(o)
		r, err := u.account(ctx, o.step, o.Result)
		u.done(o.ctx, r)
		errs = append(errs, err)
	}
	if u.err != nil {
		errs = append(errs, u.report.fail(u.err))
	}
	return errors.Join(errs...)
}

// conclude determines the status of a step, and the reason if there was nothing to do.
func (u *undoing) conclude(o *undone) {
	op, changed, changes := "revert", Changed, o.Changes
	if u.isDry && u.op != opRevert {
		op, changed = "check-revert", WouldChange
	}
	if u.isRefused {
		changed, o.Changes, o.Diff = NotRun, nil, ""
	}
	if o.Err != nil { // of its action
		o.errs = append(o.errs, errors.Unwrap(o.Err))
	}
	switch s := o.step; {
	case len(o.errs) > 0:
		o.Status, o.Err = Failed, &StepError{o.Step, op, Certain(errors.Join(o.errs...))}
	case len(changes) > 0:
		o.Status = changed
	case len(o.Advice) > 0 || s.undoer() != nil:
	case s.Skip != "" && u.book == nil:
		o.Status, o.Reason = Skipped, s.Skip
	case s.Action != nil && s.Skip == "":
		o.Status, o.Reason = Skipped, "its action cannot be undone"
	case u.book == nil:
		o.Status, o.Reason = Skipped, "nothing is recorded, since the plan has no ledger"
	default:
		o.Reason = "there is nothing to undo"
	}
}
