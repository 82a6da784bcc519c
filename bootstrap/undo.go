// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// undoing is the undoing of several steps.
type undoing struct {
	*walk
	isDry    bool
	isAbsent bool // the steps are no longer wanted: what stays is advice
	steps    []Step
	contexts map[string]context.Context // those of the steps in the plan
	results  map[string]*Result
	order    []string // in which the steps are told
	failed   map[string][]error
	err      error // of the ledger itself
}

// undo undoes steps in this order, or says what that would change. If all is set, it undoes
// whatever else is recorded for the agent, too.
func (w *walk) undo(ctx context.Context, steps []Step, all bool) error {
	if len(steps) == 0 && !all {
		return nil
	}
	if len(steps) > 0 && ctx.Err() != nil {
		return w.cutShort(ctx, &steps[0])
	}
	u := &undoing{
		walk: w, steps: steps, isDry: w.op == OpCheck || w.op == OpCheckRevert, isAbsent: w.op == OpCheck || w.op == OpApply,
		contexts: map[string]context.Context{}, results: map[string]*Result{}, failed: map[string][]error{},
	}
	for i := range steps {
		u.contexts[steps[i].Name] = w.trace.stepStart(ctx, w.op, steps[i].Name)
		u.result(steps[i].Name)
	}
	w.learn(ctx)
	u.undoInTurn(ctx, all)
	return u.tell(ctx)
}

// undoInTurn undoes what is recorded for the steps before each action that has an Undo, and
// at the end. What stayed before is tried again: what needed it may have gone.
func (u *undoing) undoInTurn(ctx context.Context, all bool) {
	names := []string{}
	for i := range u.steps {
		s := &u.steps[i]
		names = append(names, s.Name)
		if s.undoer() == nil {
			continue
		}
		if u.isDry {
			r := u.result(s.Name)
			r.Status, r.Reason = Unknown, "its action cannot say beforehand what it would undo"
			continue
		}
		u.undoRecorded(ctx, names)
		u.undoAction(u.contexts[s.Name], s)
	}
	if all {
		names = nil
	}
	u.undoRecorded(ctx, names)
}

// result returns that of the named step.
func (u *undoing) result(step string) *Result {
	if u.results[step] == nil {
		u.results[step], u.order = &Result{Step: step, Status: Unchanged}, append(u.order, step)
	}
	return u.results[step]
}

// undoRecorded undoes what is recorded for steps; nil: for all.
func (u *undoing) undoRecorded(ctx context.Context, steps []string) {
	if u.book == nil {
		return
	}
	start := time.Now()
	u.failed = map[string][]error{}
	for _, r := range u.results {
		r.Advice = nil
	}
	u.err = u.plan.Host.Do(ctx, everywhere, func(ctx context.Context) error {
		return u.undoIn(ctx, u.book, steps)
	})
	if !u.plan.Host.IsHere() {
		local, err := u.local()
		if err == nil {
			err = u.undoIn(ctx, local, steps)
		}
		u.err = errors.Join(u.err, err)
	}
	if len(steps) == 1 {
		u.result(steps[0]).Elapsed += time.Since(start)
	}
}

// undoIn undoes what is recorded in a view of the ledger. What was only changed along with
// another object belongs to that one's step.
func (u *undoing) undoIn(ctx context.Context, book *ledger.Book, steps []string) error {
	undo := book.Undo
	if u.isDry {
		undo = book.CheckUndo
	}
	undone, err := undo(ctx, ledger.Undo{Steps: steps})
	byStep, last := map[string][]ledger.Undone{}, "other steps"
	for _, o := range undone {
		last = cmp.Or(u.nameOf(o), last)
		byStep[last] = append(byStep[last], o)
		u.result(last)
	}
	for _, step := range u.order {
		objects := byStep[step]
		if err := u.result(step).addUndone(objects, failuresOf(objects), u.isAbsent); err != nil {
			u.failed[step] = append(u.failed[step], err)
		}
	}
	return without(err, undone)
}

// nameOf names the step that an object was undone for, with its agent where all agents are
// undone.
func (u *undoing) nameOf(o ledger.Undone) string {
	if o.Step == "" || !u.plan.Ledger.AllAgents {
		return o.Step
	}
	return o.Agent + "/" + o.Step
}

// failuresOf joins the errors of objects, those that read the same once.
func failuresOf(objects []ledger.Undone) error {
	var errs []error
	for _, o := range objects {
		if o.Err != nil && !slices.ContainsFunc(errs, func(err error) bool { return err.Error() == o.Err.Error() }) {
			errs = append(errs, o.Err)
		}
	}
	return errors.Join(errs...)
}

// addUndone adds what became of objects to r, and returns what remains of err. If stays is
// advice, so are the errors of objects that others have changed, or still need.
func (r *Result) addUndone(objects []ledger.Undone, err error, staysIsAdvice bool) error {
	for _, o := range objects {
		isKept := errors.Is(o.Err, ledger.ErrChanged) || errors.Is(o.Err, ledger.ErrNeeded)
		switch {
		case isKept && staysIsAdvice:
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
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return err
	}
	var rest []error
	for _, err := range joined.Unwrap() {
		rest = append(rest, without(err, objects))
	}
	return errors.Join(rest...)
}

// undoAction calls the action's Undo. It has changed something if the action's check then
// finds something else than before.
func (u *undoing) undoAction(ctx context.Context, s *Step) {
	start := time.Now()
	done := u.bounded(ctx, s, func(w *walk, ctx context.Context, s *Step) Result {
		return w.onItsSide(ctx, s, "revert", func(ctx context.Context) Result {
			before, errBefore := s.Action.Check(ctx)
			if err := s.undoer().Undo(ctx); err != nil {
				return s.result(Failed, "revert", nil, err)
			}
			after, errAfter := s.Action.Check(ctx)
			if errBefore == nil && errAfter == nil && slices.Equal(before, after) {
				return Result{Status: Unchanged}
			}
			return Result{Status: Changed}
		})
	})
	r := u.result(s.Name)
	r.Status, r.Err, r.Elapsed = done.Status, done.Err, r.Elapsed+time.Since(start)
}

// tell reports what became of each step. The error joins those that count.
func (u *undoing) tell(ctx context.Context) error {
	var errs []error
	for _, name := range u.order {
		r, err := u.account(ctx, u.stepOf(name), u.outcome(name))
		step := u.contexts[name]
		if step == nil { // it is not in the plan
			step = u.trace.stepStart(ctx, u.op, name)
		}
		u.done(step, r)
		errs = append(errs, err)
	}
	if u.err != nil {
		errs = append(errs, u.report.fail(u.err))
	}
	return errors.Join(errs...)
}

// stepOf returns the named step, or one without an action if the plan has none.
func (u *undoing) stepOf(name string) *Step {
	for i := range u.steps {
		if u.steps[i].Name == name {
			return &u.steps[i]
		}
	}
	return &Step{Name: name}
}

// outcome completes the result of one step.
func (u *undoing) outcome(name string) Result {
	r, s := *u.results[name], u.stepOf(name)
	op, changed := "revert", Changed
	if u.isDry {
		op, changed = "check-revert", WouldChange
	}
	errs := u.failed[name]
	if r.Err != nil {
		errs = append(errs, errors.Unwrap(r.Err))
	}
	isSilent := len(r.Changes)+len(r.Advice) == 0
	switch {
	case len(errs) > 0:
		r.Status, r.Err, r.certain = Failed, newStepError(name, op, errors.Join(errs...)), true
	case r.Status == Unchanged && len(r.Changes) > 0:
		r.Status = changed
	case r.Status != Unchanged || !isSilent:
	case s.Skip && u.book == nil:
		r.Status, r.Reason = Skipped, s.SkipReason
	case s.Action != nil && s.undoer() == nil && !s.Skip:
		r.Status, r.Reason = Skipped, "its action cannot be undone"
	case u.book == nil && s.undoer() == nil:
		r.Status, r.Reason = Skipped, "nothing is recorded, since the plan has no ledger"
	case s.undoer() == nil:
		r.Reason = "nothing is recorded of it"
	}
	return r
}
