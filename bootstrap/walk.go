// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/once"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// walk is one run of a plan.
type walk struct {
	plan   Plan // complete, once it is prepared
	op     string
	trace  *Trace // with all hooks
	report *Report
	book   *ledger.Book // nil: the ledger is not open, or there is none

	isBefore bool                    // it is the look before an apply
	stops    bool                    // at the first failure that counts
	stopped  bool                    // no further step is run
	cause    map[string]string       // step -> the failed step that blocks what comes after it
	pending  map[string]bool         // steps that are, or come after, one that would change
	waits    bool                    // a gate is not open
	claims   bool                    // a step would record something, although nothing changes
	kinds    map[string]*ledger.Kind // that the steps are known to want
	unready  map[string]error        // steps whose Prepare has failed
}

// run runs the plan by one of the methods below.
func (p *Plan) run(ctx context.Context, op string, validate func() error, by func(*walk, context.Context) error) (*Report, error) {
	start, trace := time.Now(), JoinTraces(p.Trace)
	ctx = trace.in(trace.PlanStart(once.With(ctx), op), "")
	w := &walk{plan: *p, op: op, trace: trace, cause: make(map[string]string), pending: make(map[string]bool), kinds: make(map[string]*ledger.Kind), unready: make(map[string]error)}
	w.report = &Report{
		Op: op, Start: start, Node: p.Node, Version: p.Version, Command: p.Command, Results: make([]Result, 0, len(p.Gates)+len(p.Steps)),
	}
	err := validate()
	if err == nil {
		err = by(w, ctx)
	} else {
		w.report.fail(err)
	}
	w.rest(ctx)
	w.report.Elapsed = time.Since(start)
	trace.PlanDone(ctx, w.report)
	return w.report, err
}

// reverts reports whether the run undoes the plan, or says what that would change.
func (w *walk) reverts() bool { return w.op == opRevert || w.op == opCheckRevert }

// backward lists the steps, the last one first.
func backward(steps []Step) []Step {
	steps = slices.Clone(steps)
	slices.Reverse(steps)
	return steps
}

// parts returns the steps that are to be undone, the last one first, and the others.
func (w *walk) parts() (absent, others []Step) {
	for _, s := range w.plan.Steps {
		if s.Absent && s.Skip == "" {
			absent = append(absent, s)
		} else {
			others = append(others, s)
		}
	}
	return backward(absent), others
}

// rest ends the report: steps of which it does not tell have not run, or are blocked by a
// gate that failed.
func (w *walk) rest(ctx context.Context) {
	reported := make(map[string]bool, len(w.report.Results))
	for _, r := range w.report.Results {
		reported[r.Step] = true
	}
	absent, others := w.parts()
	steps := slices.Concat(w.plan.Gates, absent, others)
	if w.reverts() {
		steps = backward(w.plan.Steps)
	}
	for _, s := range steps {
		if reported[s.Name] {
			continue
		}
		w.inherit(&s)
		if cause, blocked := w.cause[s.Name]; blocked && !w.reverts() {
			w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(cause)})
			continue
		}
		if errors.Is(w.report.Err, ledger.ErrRevoked) { // a newer owner has the node, which is no failure
			w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: "the node is no longer this process's"})
			continue
		}
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	}
}

// checkPlan is Plan.Check.
func (w *walk) checkPlan(ctx context.Context) error {
	err := w.over(ctx, w.plan.Gates, (*walk).check)
	w.waits = w.report.Changed() || err != nil
	if prepareErr := w.prepare(ctx); prepareErr != nil {
		return errors.Join(err, prepareErr)
	}
	return errors.Join(err, w.inside(ctx, (*ledger.Book).MayApply, func(ctx context.Context) error {
		return w.steps(ctx, (*walk).check)
	}))
}

// steps goes over the plan's steps.
func (w *walk) steps(ctx context.Context, do do) error {
	absent, others := w.parts()
	err := w.undo(ctx, absent, false)
	return errors.Join(err, w.over(ctx, others, do))
}

// applyPlan is Plan.Apply.
func (w *walk) applyPlan(ctx context.Context) error {
	w.stops = true
	err := w.over(ctx, w.plan.Gates, (*walk).apply)
	if err == nil {
		err = w.prepare(ctx)
	}
	if err != nil {
		w.keepFailure(ctx)
		return err
	}
	for {
		seen := w.records(ctx)
		isNeeded, err := w.foresee(ctx)
		if err != nil {
			w.keepFailure(ctx)
		}
		if !isNeeded {
			return err
		}
		claim := func(book *ledger.Book, ctx context.Context) error {
			if now := w.records(ctx); !sameFile(seen, now) {
				return errOutdated
			}
			return book.Claim(ctx)
		}
		err = w.changing(ctx, claim, func(ctx context.Context) error { return w.steps(ctx, (*walk).apply) })
		if !errors.Is(err, errOutdated) {
			return err
		}
		w.report.Err = nil
	}
}

// errOutdated means that another process has changed the records since the look before an apply.
var errOutdated = errors.New("the records have changed")

// records looks at the ledger's file, which is another one after each change. Nil: there is none.
func (w *walk) records(ctx context.Context) (file fs.FileInfo) {
	if w.plan.Ledger != nil {
		_ = w.plan.Host.Do(ctx, []string{"mnt"}, func(context.Context) (err error) { // a failure is the look's own, or the claim's
			file, err = os.Lstat(w.plan.Ledger.File())
			return err
		})
	}
	return file
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// foresee checks the plan before it is applied. Unless it is to be applied, the report
// tells what was found.
func (w *walk) foresee(ctx context.Context) (isNeeded bool, err error) {
	look := w.lookBefore()
	err = look.inside(ctx, (*ledger.Book).MayApply, func(ctx context.Context) error {
		err := look.steps(ctx, (*walk).check)
		isNeeded = look.claims || look.report.Changed() || look.report.Count(Failed, Blocked) > 0
		if err == nil && !isNeeded {
			if isNeeded, err = look.book.NeedsClaim(ctx); err != nil {
				return look.report.fail(err)
			}
		}
		return err
	})
	found := look.report
	// The plan stops at any failure that counts, but for one that concerns its step alone, or to
	// undo objects that are no longer wanted.
	isUnwilling := slices.ContainsFunc(found.Results, func(r Result) bool {
		return r.Status == Failed && !r.Excused && !w.plan.Step(r.Step).Absent && !isAlone(r.Err)
	})
	w.report.Agent, w.report.Owner, w.report.Generation = found.Agent, found.Owner, found.Generation
	switch {
	case err == nil && isNeeded:
		return true, nil
	case err != nil && found.Err == nil && ctx.Err() == nil && !isUnwilling:
		return true, nil
	}
	for _, r := range found.Results {
		step := ctx
		switch {
		case err != nil && slices.Contains([]Status{WouldChange, Unknown}, r.Status):
			r = Result{Step: r.Step, Status: NotRun, Elapsed: r.Elapsed}
		case !slices.Contains([]Status{Skipped, Blocked, NotRun}, r.Status): // it was tried
			step = w.start(ctx, r.Step)
		}
		w.done(step, r)
	}
	if found.Err != nil {
		w.report.fail(found.Err)
	}
	return false, err
}

// lookBefore returns the walk that looks before an apply. It calls no hooks but Checking.
func (w *walk) lookBefore() *walk {
	look := &walk{plan: w.plan, op: opCheck, report: &Report{}, isBefore: true, kinds: w.kinds, unready: w.unready}
	look.cause, look.pending = maps.Clone(w.cause), make(map[string]bool) // what failed gates block
	look.trace = JoinTraces(&Trace{Waiting: w.trace.Waiting, Records: w.trace.Records, StepStart: func(ctx context.Context, _ string, step string) context.Context {
		w.trace.Checking(ctx, step)
		return ctx
	}})
	return look
}

// revertPlan is Plan.Revert and Plan.CheckRevert.
func (w *walk) revertPlan(ctx context.Context) error { return w.revert(ctx, false) }

// uninstall is Plan.Uninstall and Plan.CheckUninstall.
func (w *walk) uninstall(ctx context.Context) error {
	if w.plan.Ledger == nil {
		return w.report.fail(errors.New("the plan has no ledger, so nothing is recorded that could be undone"))
	}
	return w.revert(ctx, true)
}

func (w *walk) revert(ctx context.Context, all bool) error {
	undo := func(ctx context.Context) error { return w.undo(ctx, backward(w.plan.Steps), all) }
	if w.op == opCheckRevert {
		return w.inside(ctx, (*ledger.Book).MayUndo, undo)
	}
	return w.changing(ctx, (*ledger.Book).MayUndo, undo)
}

// prepare completes the plan, and then each step. If the plan's own Prepare fails, the report
// tells.
func (w *walk) prepare(ctx context.Context) error {
	w.plan.Steps = slices.Clone(w.plan.Steps)
	if err := w.preparePlan(ctx); err != nil {
		return err
	}
	for i := range w.plan.Steps {
		w.prepareStep(ctx, &w.plan.Steps[i])
	}
	w.report.Steps = w.plan.Steps
	return nil
}

func (w *walk) preparePlan(ctx context.Context) error {
	if w.plan.Prepare == nil {
		return nil
	}
	prepare := w.plan.Prepare
	w.plan.Prepare = nil
	within, wait := waiting.On(ctx, "the plan's Prepare to end")
	err := prepare(within, &w.plan)
	wait.End()
	var failure *StepError
	switch {
	case errors.As(err, &failure) && w.plan.Step(failure.Step) != nil:
		w.unprepared(ctx, failure)
	case err != nil:
		w.report.fail(err)
	default:
		if err = w.plan.validate(); err != nil {
			w.report.fail(err)
		}
	}
	return err
}

// prepareStep has a step say what it wants. Its error is certain, as no step comes before it,
// unless a gate is closed.
func (w *walk) prepareStep(ctx context.Context, s *Step) {
	if w.inherit(s); s.Prepare == nil || s.Skip != "" || s.Absent || w.cause[s.Name] != "" {
		return
	}
	w.trace.Checking(ctx, s.Name)
	prepared := bounded(w.trace.in(ctx, s.Name), s, func(ctx context.Context) Result {
		wants, err := s.Prepare(ctx)
		if err == nil && (wants == nil || isNil(wants)) {
			err = errors.New("it returned nothing that the step wants")
		}
		if err != nil && !w.waits {
			err = Certain(err)
		}
		if err != nil {
			return s.failed(opPrepare, nil, err)
		}
		s.Wants, s.Prepare = wants, nil
		return Result{}
	})
	w.unready[s.Name] = prepared.Err
}

// unprepared reports that a step could not be completed.
func (w *walk) unprepared(ctx context.Context, failure *StepError) {
	for _, s := range w.plan.Steps {
		switch {
		case s.Name == failure.Step:
			w.done(ctx, Result{Step: s.Name, Status: Failed, Err: failure})
		case s.Skip != "":
			w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.Skip})
		default:
			w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(failure.Step)})
		}
	}
}

// over goes over steps. Its error joins those of the failures that count.
func (w *walk) over(ctx context.Context, steps []Step, do do) error {
	var errs []error
	for i := range steps {
		errs = append(errs, w.step(ctx, &steps[i], do))
	}
	return errors.Join(errs...)
}

// step decides whether s runs at all, and runs it. The error is that of a failure that
// counts.
func (w *walk) step(ctx context.Context, s *Step, do do) error {
	w.inherit(s)
	switch cause, blocked := w.cause[s.Name]; {
	case s.Skip != "":
		w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.Skip})
	case blocked:
		w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(cause)})
	case w.stopped:
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	case ctx.Err() != nil:
		return w.cutShort(ctx, s)
	default:
		return w.try(ctx, s, do)
	}
	return nil
}

// cutShort ends the walk before s.
func (w *walk) cutShort(ctx context.Context, s *Step) error {
	w.stopped = true
	err := &StepError{s.Name, "start", failure.Ended(ctx)}
	w.done(ctx, Result{Step: s.Name, Status: NotRun, Err: err})
	return err
}

// inherit marks s as blocked or pending if a step named in its After is. The list
// is in order, so those steps have already inherited from theirs.
func (w *walk) inherit(s *Step) {
	for _, name := range s.After {
		if cause, blocked := w.cause[name]; blocked && w.cause[s.Name] == "" {
			w.cause[s.Name] = cause
		}
		if w.pending[name] {
			w.pending[s.Name] = true
		}
	}
}

// start calls the hook of a step's begin, and returns the step's context.
func (w *walk) start(ctx context.Context, step string) context.Context {
	return w.trace.in(w.trace.StepStart(ctx, w.op, step), step)
}

func (w *walk) try(ctx context.Context, s *Step, do do) error {
	ctx = w.start(ctx, s.Name)
	start := time.Now()
	advised := func(w *walk, ctx context.Context, s *Step) Result { return s.advised(ctx, do(w, ctx, s)) }
	r := Result{Status: Failed, Err: w.unready[s.Name]}
	if r.Err == nil {
		r = bounded(ctx, s, func(ctx context.Context) Result { return w.onItsSide(ctx, s, advised) })
	}
	r.Step, r.Elapsed = s.Name, time.Since(start)
	r, err := w.account(ctx, s, r)
	w.done(ctx, r)
	return err
}

// bounded does something of s within its timeout.
func bounded(ctx context.Context, s *Step, do func(context.Context) Result) Result {
	limited, wait := waiting.On(ctx, "step "+s.Name+" to end")
	defer wait.End()
	limited, cancel := context.WithCancel(limited) // ends the waits that it has begun, too
	defer cancel()
	if s.Timeout > 0 {
		limited, cancel = context.WithTimeout(limited, s.Timeout)
		defer cancel()
	}
	r := do(limited)
	var failed *StepError
	cause := context.Cause(ctx)
	switch {
	case !errors.As(r.Err, &failed):
	case limited.Err() != nil && ctx.Err() == nil:
		failed.Err = fmt.Errorf("%w (the step's timeout is %s)", failed.Err, s.Timeout)
		if Code(failed) == code.PlanFailed {
			failed.Err = code.Wrap(code.PlanTimeout, failed.Err)
		}
	case cause != nil && errors.Is(failed.Err, ctx.Err()) && !errors.Is(failed.Err, cause): // why it did not wait any longer
		failed.Err = fmt.Errorf("%w: %w", failed.Err, cause)
	}
	return r
}

// account settles what a result means for the rest of the walk.
func (w *walk) account(ctx context.Context, s *Step, r Result) (Result, error) {
	switch {
	case r.Status == WouldChange, r.Status == Unknown:
		w.pending[s.Name] = true
	case r.Status != Failed:
	case (w.pending[s.Name] || w.waits) && !isCertain(r.Err) && ctx.Err() == nil:
		r.Status = Unknown
	default:
		w.cause[s.Name] = s.Name
		r.Excused = s.Optional && !w.reverts()
		if !r.Excused {
			w.stopped = w.stopped || w.stops && !s.Absent && !isAlone(r.Err) || (w.op == opApply || w.isBefore) && endsPlan(ctx, r.Err)
			return r, r.Err
		}
	}
	return r, nil
}

func (w *walk) done(ctx context.Context, r Result) {
	if r.Status == NotRun && r.Err == nil {
		r.Reason = "the plan stopped before it"
	}
	w.report.Results = append(w.report.Results, r)
	w.trace.StepDone(ctx, w.op, r)
}
