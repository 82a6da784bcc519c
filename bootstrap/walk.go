// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/once"
)

// pass is one way to go over steps.
type pass struct {
	do      func(w *walk, ctx context.Context, s *Step) Result // leaves Step and Elapsed to the walk
	reverse bool                                               // last step first; no failure is excused
	stops   bool                                               // at the first failure that counts
}

// order yields the steps as listed or, in reverse, from the last to the first.
// Absent steps come before all others, the last one first.
func (p pass) order(steps []Step) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for _, s := range slices.Backward(steps) {
			if (p.reverse || s.Absent) && !yield(s) {
				return
			}
		}
		for _, s := range steps {
			if !p.reverse && !s.Absent && !yield(s) {
				return
			}
		}
	}
}

// walk is one run of a plan.
type walk struct {
	pass
	plan    Plan // complete, once it is prepared
	op      Op
	trace   *Trace
	report  *Report
	stopped bool // no further step is run

	cause   map[string]string // step -> the failed step that blocks what comes after it
	pending map[string]bool   // steps that are, or come after, one that would change
	waits   bool              // a gate is not open

	entered context.Context // that of the journal, once it has been entered
	silent  bool            // looks for an Apply: advice is dropped
}

// run runs the plan by one of the methods below; all says that it is one that undoes all.
func (p *Plan) run(ctx context.Context, op Op, all bool, by func(*walk, context.Context) error) (*Report, error) {
	start := time.Now()
	ctx = p.Trace.planStart(once.With(ctx), op)
	p = p.bridged()
	w := &walk{plan: *p, op: op, trace: p.Trace, report: &Report{
		Op: op, Start: start, Node: p.Node, Version: p.Version, Command: p.Command, Results: make([]Result, 0, len(p.Gates)+len(p.Steps)),
	}}
	w.reverse = op == OpRevert || op == OpCheckRevert
	w.cause, w.pending = make(map[string]string), make(map[string]bool)
	err := p.valid(all)
	if err == nil {
		err = by(w, ctx)
	} else {
		w.report.fail(err)
	}
	w.rest(ctx)
	w.report.Elapsed = time.Since(start)
	p.Trace.planDone(ctx, w.report)
	return w.report, err
}

// rest ends the report: steps of which it does not tell have not run, or are blocked by a
// gate that failed.
func (w *walk) rest(ctx context.Context) {
	told := make(map[string]bool, len(w.report.Results))
	for _, r := range w.report.Results {
		told[r.Step] = true
	}
	var gates []Step
	if !w.reverse {
		gates = w.plan.Gates
	}
	for _, s := range slices.Concat(gates, slices.Collect(w.order(w.plan.Steps))) {
		if told[s.Name] {
			continue
		}
		w.inherit(&s)
		if cause, blocked := w.cause[s.Name]; blocked && !w.reverse {
			w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(cause)})
			continue
		}
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	}
}

// checkPlan is Plan.Check.
func (w *walk) checkPlan(ctx context.Context) error {
	err := w.over(ctx, w.plan.Gates, pass{do: (*walk).check})
	w.waits = w.report.Changed() || err != nil
	if more := w.prepare(ctx); more != nil {
		return errors.Join(err, more)
	}
	return errors.Join(err, w.inside(ctx, OpCheck, w.checkSteps))
}

func (w *walk) checkSteps(ctx context.Context) error {
	return w.over(ctx, w.plan.Steps, pass{do: (*walk).check})
}

// applyPlan is Plan.Apply.
func (w *walk) applyPlan(ctx context.Context) error {
	waited := w.over(ctx, w.plan.Gates, pass{do: (*walk).apply, stops: true})
	if waited != nil && w.stopped {
		w.keepFailure(ctx)
		return waited
	}
	if err := w.prepare(ctx); err != nil {
		w.keepFailure(ctx)
		return err
	}
	needed, err := w.foresee(ctx)
	if err != nil {
		w.keepFailure(ctx)
	}
	if !needed {
		return err
	}
	return w.locked(ctx, func(ctx context.Context) error {
		return w.inside(ctx, OpApply, func(ctx context.Context) error {
			return w.over(ctx, w.plan.Steps, pass{do: (*walk).apply, stops: !w.plan.KeepGoing})
		})
	})
}

// foresee checks the plan before it is applied. Unless it is to be applied, the report
// tells what was found.
func (w *walk) foresee(ctx context.Context) (needed bool, err error) {
	check := &walk{plan: w.plan, op: OpCheck, report: &Report{}, silent: true}
	check.cause, check.pending = maps.Clone(w.cause), make(map[string]bool) // what failed gates block
	if w.trace != nil {
		check.trace = &Trace{Waiting: w.trace.Waiting, StepStart: func(ctx context.Context, _ Op, step string) context.Context {
			if w.trace.Checking != nil {
				w.trace.Checking(ctx, step)
			}
			return ctx
		}}
	}
	err = check.inside(ctx, OpCheck, func(ctx context.Context) error {
		err := check.checkSteps(ctx)
		needed = check.report.Changed() || check.report.Count(Failed, Blocked) > 0 || w.plan.Ledger != nil && err == nil
		if w.plan.Journal == nil {
			return err
		}
		if needed = needed || w.plan.Journal.Wishes(ctx); err == nil && !needed {
			if needed, err = w.plan.Journal.Claims(ctx); err != nil {
				return check.report.fail(err)
			}
		}
		w.identify(ctx)
		return err
	})
	switch {
	case err == nil && needed:
		return true, nil
	case err != nil && check.report.Err == nil && ctx.Err() == nil && (w.plan.KeepGoing || !check.unwilling()):
		return true, nil
	}
	for _, r := range check.report.Results {
		step := ctx
		switch {
		case err != nil && slices.Contains([]Status{WouldChange, Unknown}, r.Status):
			r = Result{Step: r.Step, Status: NotRun, Elapsed: r.Elapsed}
		case !slices.Contains([]Status{Skipped, Blocked, NotRun}, r.Status): // it was tried
			step = w.trace.stepStart(ctx, w.op, r.Step)
			r = w.advisedUnchanged(ctx, r)
		}
		w.done(step, r)
	}
	if check.report.Err != nil {
		w.report.fail(check.report.Err)
	}
	return false, err
}

// advisedUnchanged returns r with the advice of a step in which there is nothing to do.
func (w *walk) advisedUnchanged(ctx context.Context, r Result) Result {
	s := w.plan.Step(r.Step)
	if r.Status != Unchanged || s.Absent {
		return r
	}
	if w.entered != nil {
		ctx = w.recording(w.entered, s)
	}
	err := w.enter(ctx, s, func(ctx context.Context) error {
		r = s.advised(ctx, r)
		return nil
	})
	if err != nil {
		r.Advice = append(r.Advice, "there may be more to say: "+err.Error())
	}
	return r
}

// unwilling reports whether the plan stops at what it has found: at any failure that
// counts but the one to undo objects that are no longer wanted.
func (w *walk) unwilling() bool {
	return slices.ContainsFunc(w.report.Results, func(r Result) bool {
		return r.Status == Failed && !r.Excused && !w.plan.Step(r.Step).Absent
	})
}

// revertPlan is Plan.Revert and Plan.CheckRevert.
func (w *walk) revertPlan(ctx context.Context) error {
	how, locked := pass{do: (*walk).revert, reverse: true}, w.locked
	if w.op == OpCheckRevert {
		how.do, locked = (*walk).checkRevert, open
	}
	return locked(ctx, func(ctx context.Context) error {
		return w.inside(ctx, w.op, func(ctx context.Context) error { return w.over(ctx, w.plan.Steps, how) })
	})
}

// open calls f without the lock.
func open(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

// prepare completes the plan. If that fails, the report tells.
func (w *walk) prepare(ctx context.Context) error {
	if w.plan.Prepare == nil {
		return nil
	}
	w.plan.Steps = slices.Clone(w.plan.Steps)
	prepare := w.plan.Prepare
	w.plan.Prepare = nil
	err := prepare(ctx, &w.plan)
	if err != nil {
		w.plan.Prepare = prepare // it is as incomplete as before
	}
	switch {
	case errors.As(err, new(PlanEnder)):
		return w.report.fail(err)
	case err != nil:
		return w.unprepared(ctx, err)
	}
	w.plan = *w.plan.bridged()
	if err := w.plan.Validate(); err != nil {
		return w.report.fail(err)
	}
	return nil
}

// unprepared reports that the steps could not be completed.
func (w *walk) unprepared(ctx context.Context, err error) error {
	var failure *StepError
	named := errors.As(err, &failure)
	if named && w.plan.Step(failure.Step) == nil {
		named, err = false, fmt.Errorf("the error is that of %q, which is none of the plan's steps: %w", failure.Step, err)
	}
	if !named {
		failure = newStepError("", "prepare", err)
		if len(w.plan.Steps) > 0 {
			failure.Step = w.plan.Steps[0].Name
		}
		err = failure
	}
	failure.Code = Code(failure)
	for _, s := range w.plan.Steps {
		switch {
		case s.Name == failure.Step:
			w.done(ctx, Result{Step: s.Name, Status: Failed, Err: failure})
		case s.Skip:
			w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.SkipReason})
		default:
			w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(failure.Step)})
		}
	}
	return err
}

// locked calls f with the node's lock held, if there is a host.
func (w *walk) locked(ctx context.Context, f func(context.Context) error) (err error) {
	w.entered = nil
	if w.plan.Host == nil {
		return f(ctx)
	}
	owner := ""
	if w.plan.Journal != nil {
		_, owner, _ = w.plan.Journal.Identity(ctx)
	}
	unlock, err := w.plan.Host.Lock(ctx, owner, func(what string, atMost time.Duration) {
		Waiting(ctx, Wait{For: what, Pause: atMost})
	})
	if err != nil {
		return w.report.fail(fmt.Errorf("take the node's lock: %w", err))
	}
	if unlock != nil {
		defer func() {
			if uerr := unlock(); uerr != nil {
				err = errors.Join(err, w.report.fail(fmt.Errorf("give back the node's lock: %w", uerr)))
			}
		}()
	}
	err = f(ctx)
	if kerr := w.keep(ctx, w.entered); kerr != nil {
		err = errors.Join(err, w.report.fail(kerr))
	}
	return err
}

// keep has the journal keep the report of a run that has locked the node.
func (w *walk) keep(ctx, entered context.Context) error {
	if entered == nil {
		return nil // there is none, or it has refused
	}
	w.rest(ctx)
	w.report.Elapsed = time.Since(w.report.Start)
	return w.plan.Journal.SaveReport(entered, w.report.kept())
}

// keepFailure does so for a run that has ended before it was to change anything, unless the
// plan is invalid or the node has another owner. It is a word for later: if it cannot be
// kept, the failure is told all the same.
func (w *walk) keepFailure(ctx context.Context) {
	if w.plan.Journal == nil || w.plan.Host == nil || w.plan.Validate() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWithin)
	defer cancel()
	if w.permitted(ctx, func(context.Context) error { return nil }) != nil {
		return // it is not to wait for the lock either
	}
	unlock, err := w.plan.Host.Lock(ctx, w.report.Owner, nil)
	if err != nil {
		return
	}
	if unlock != nil {
		defer func() { _ = unlock() }()
	}
	_ = w.permitted(ctx, func(entered context.Context) error { return w.keep(ctx, entered) })
}

// keepWithin is the time that a failure gets to be kept, also of a run whose own is over.
const keepWithin = 500 * time.Millisecond

// permitted calls f in the journal, unless the node has another owner, who has come later:
// the next one may, who has not claimed the node yet.
func (w *walk) permitted(ctx context.Context, f func(context.Context) error) error {
	entered, leave, err := w.plan.Journal.Enter(ctx, string(OpCheck), w.plan.enter)
	if err != nil {
		return err
	}
	w.report.Agent, w.report.Owner, w.report.Generation = w.plan.Journal.Identity(entered)
	return errors.Join(f(entered), leave())
}

// inside calls f once the journal, if there is one, has let this process in.
func (w *walk) inside(ctx context.Context, op Op, f func(context.Context) error) (err error) {
	own := f
	f = func(ctx context.Context) error { return w.plan.withBook(ctx, own) }
	if w.plan.Journal == nil {
		return f(ctx)
	}
	inside, leave, err := w.plan.Journal.Enter(ctx, string(op), w.plan.enter)
	if err != nil {
		return w.report.fail(err)
	}
	w.identify(inside)
	defer func() {
		if lerr := leave(); lerr != nil {
			err = errors.Join(err, w.report.fail(lerr))
		}
	}()
	return f(inside)
}

// over goes over steps. Its error joins those of the failures that count.
func (w *walk) over(ctx context.Context, steps []Step, how pass) error {
	w.pass = how
	var errs []error
	for s := range how.order(steps) {
		errs = append(errs, w.step(ctx, &s))
	}
	return errors.Join(errs...)
}

// step decides whether s runs at all, and runs it. The error is that of a failure that
// counts.
func (w *walk) step(ctx context.Context, s *Step) error {
	w.inherit(s)
	switch cause, blocked := w.cause[s.Name]; {
	case s.Skip && (w.plan.Journal == nil || !w.reverse):
		w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.SkipReason})
	case blocked:
		w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(cause)})
	case w.stopped:
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	case ctx.Err() != nil:
		w.stopped = true
		err := newStepError(s.Name, "start", failure.Ended(ctx))
		w.done(ctx, Result{Step: s.Name, Status: NotRun, Err: err})
		return err
	default:
		return w.run(ctx, s)
	}
	return nil
}

// inherit marks s as blocked or pending if a step named in its After is. The list
// is in order, so those steps have already inherited from theirs. In reverse, those
// steps have not run yet, so nothing blocks s.
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

func (w *walk) run(ctx context.Context, s *Step) error {
	ctx = w.trace.stepStart(ctx, w.op, s.Name)
	start := time.Now()
	recording := w.recording(ctx, s)
	r := w.bounded(recording, s)
	addCause(ctx, r.Err)
	if recording != ctx && r.Status != Failed {
		r.Advice = append(r.Advice, w.plan.Journal.Advice(recording)...)
	}
	r.Step = s.Name
	r.Elapsed = time.Since(start)
	r, err := w.account(ctx, s, r)
	w.done(ctx, r)
	return err
}

// recording returns the context for a step: with the journal, if what it changes is
// recorded or undone.
func (w *walk) recording(ctx context.Context, s *Step) context.Context {
	j := w.plan.Journal
	if j == nil || !w.reverse && !s.Absent && !s.recorded(w.plan.Host) || slices.ContainsFunc(w.plan.Gates, func(g Step) bool { return g.Name == s.Name }) {
		return ctx
	}
	return j.WithStep(ctx, s.Name)
}

// addCause adds to the error of a step that was waiting for something why it did not wait
// any longer, unless the error names that too.
func addCause(ctx context.Context, err error) {
	var failed *StepError
	cause := context.Cause(ctx)
	if cause != nil && errors.As(err, &failed) && errors.Is(failed.Err, ctx.Err()) && !errors.Is(failed.Err, cause) {
		failed.Err = fmt.Errorf("%w: %w", failed.Err, cause)
	}
}

// bounded does s within its timeout.
func (w *walk) bounded(ctx context.Context, s *Step) Result {
	if s.Timeout == 0 {
		return w.do(w, ctx, s)
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r := w.do(w, limited, s)
	var failed *StepError
	if limited.Err() != nil && ctx.Err() == nil && errors.As(r.Err, &failed) {
		failed.Err = fmt.Errorf("%w (the step's timeout is %s)", failed.Err, s.Timeout)
		if failed.Code == code.PlanFailed {
			failed.Code = code.PlanTimeout
		}
	}
	return r
}

// account settles what a result means for the rest of the walk.
func (w *walk) account(ctx context.Context, s *Step, r Result) (Result, error) {
	switch {
	case r.Status == WouldChange:
		w.pending[s.Name] = true
	case r.Status != Failed:
	case (w.pending[s.Name] || w.waits) && !r.certain && ctx.Err() == nil, s.Absent && w.op == OpCheck && len(w.pending) > 0: // what goes before it is still there
		r.Status = Unknown
	case s.Absent && !w.reverse && r.onlyKept():
		return r.keeping(), nil
	default:
		w.cause[s.Name] = s.Name
		r.Excused = s.Optional && !w.reverse
		if !r.Excused {
			w.stopped = w.stops && !s.Absent || (w.op == OpApply || w.silent) && endsPlan(ctx, r.Err)
			return r, r.Err
		}
	}
	return r, nil
}

func (w *walk) done(ctx context.Context, r Result) {
	if w.reverse && w.plan.Journal != nil && r.Status == Unchanged && len(r.Advice) == 0 {
		r.Reason = "nothing is recorded of it"
	}
	if r.Status == NotRun && r.Err == nil {
		r.Reason = "the plan stopped before it"
	}
	w.report.Results = append(w.report.Results, r)
	w.trace.stepDone(ctx, w.op, r)
}

// identify tells the report for whom the plan runs.
func (w *walk) identify(inside context.Context) {
	w.entered = inside
	r := w.report
	r.Agent, r.Owner, r.Generation = w.plan.Journal.Identity(inside)
}
