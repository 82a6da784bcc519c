// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
)

// pass is one way to go over a plan.
type pass struct {
	op      Op
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

// walk is the state of one pass.
type walk struct {
	pass
	journal Journal // nil: none
	trace   *Trace
	report  *Report
	errs    []error
	stopped bool // no further step is run

	cause   map[string]string // step -> the failed step that blocks what comes after it
	pending map[string]bool   // steps that are, or come after, one that would change
}

func (p *Plan) newWalk(how pass) *walk {
	return &walk{
		pass:    how,
		journal: p.Journal,
		trace:   p.Trace,
		report:  &Report{Results: make([]Result, 0, len(p.Steps))},
		cause:   make(map[string]string),
		pending: make(map[string]bool),
	}
}

// run goes over the plan, in one of the ways below.
func (p *Plan) run(ctx context.Context, how pass, by func(*Plan, context.Context, pass) (*Report, error)) (*Report, error) {
	start := time.Now()
	ctx = p.Trace.planStart(ctx, how.op)
	report, err := by(p, ctx, how)
	report.Op, report.Start, report.Elapsed = how.op, start, time.Since(start)
	p.Trace.planDone(ctx, report)
	return report, err
}

// prepared calls by with the steps complete.
func prepared(by func(*Plan, context.Context, pass) (*Report, error)) func(*Plan, context.Context, pass) (*Report, error) {
	return func(p *Plan, ctx context.Context, how pass) (*Report, error) {
		if p.Prepare == nil || p.Validate() != nil {
			return by(p, ctx, how)
		}
		complete := *p
		complete.Steps, complete.Prepare = slices.Clone(p.Steps), nil
		if err := p.Prepare(ctx, &complete); err != nil {
			return p.unprepared(ctx, how, err)
		}
		return by(&complete, ctx, how)
	}
}

// unprepared is the report of a plan whose steps could not be completed.
func (p *Plan) unprepared(ctx context.Context, how pass, err error) (*Report, error) {
	var failure *StepError
	if !errors.As(err, &failure) || p.Step(failure.Step) == nil {
		failure = newStepError("", "prepare", err)
		if len(p.Steps) > 0 {
			failure.Step = p.Steps[0].Name
		}
		err = failure
	}
	failure.Code = Code(failure)
	w := p.newWalk(how)
	for _, s := range p.Steps {
		switch {
		case s.Name == failure.Step:
			w.done(ctx, Result{Step: s.Name, Status: Failed, Err: failure})
		case s.Skip:
			w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.SkipReason})
		default:
			w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(failure.Step)})
		}
	}
	return w.report, err
}

// applied is locked, unless CheckFirst is set and there is nothing to do.
func (p *Plan) applied(ctx context.Context, how pass) (*Report, error) {
	if report := p.unchanged(ctx); report != nil {
		for _, r := range report.Results {
			p.Trace.stepDone(p.Trace.stepStart(ctx, how.op, r.Step), how.op, r)
		}
		return report, nil
	}
	return p.locked(ctx, how)
}

// unchanged is the report of a node on which Apply has nothing to do. It is nil if
// Apply may have something to do, or CheckFirst is not set.
func (p *Plan) unchanged(ctx context.Context) *Report {
	if !p.CheckFirst {
		return nil
	}
	if j, ok := p.Journal.(interface{ Claims() (bool, error) }); ok {
		if claims, err := j.Claims(); claims || err != nil {
			return nil
		}
	}
	silent := *p
	silent.Trace = nil
	report, err := silent.entered(ctx, pass{op: OpCheck, do: (*walk).check})
	if err != nil || report.Changed() || report.Count(Failed, Blocked) > 0 {
		return nil
	}
	return report
}

// locked is entered with the plan's lock held.
func (p *Plan) locked(ctx context.Context, how pass) (report *Report, err error) {
	if p.Lock == nil || p.Validate() != nil {
		return p.entered(ctx, how)
	}
	unlock, err := p.Lock(ctx)
	if err != nil {
		return p.standStill(ctx, how, fmt.Errorf("take the plan's lock: %w", err))
	}
	if unlock != nil {
		defer func() {
			if uerr := unlock(); uerr != nil {
				err = errors.Join(err, report.fail(fmt.Errorf("give back the plan's lock: %w", uerr)))
			}
		}()
	}
	return p.entered(ctx, how)
}

// entered is walk, once the journal has let this process in.
func (p *Plan) entered(ctx context.Context, how pass) (report *Report, err error) {
	if p.Journal == nil || p.Validate() != nil {
		return p.walk(ctx, how)
	}
	inside, leave, err := p.Journal.Enter(ctx, string(how.op))
	if err != nil {
		return p.standStill(ctx, how, err)
	}
	defer func() { err = errors.Join(err, report.fail(leave())) }()
	return p.walk(inside, how)
}

func (p *Plan) walk(ctx context.Context, how pass) (*Report, error) {
	if err := p.Validate(); err != nil {
		return p.standStill(ctx, how, err)
	}
	w := p.newWalk(how)
	for s := range how.order(p.Steps) {
		w.step(ctx, &s)
	}
	return w.report, errors.Join(w.errs...)
}

// standStill is the report of a plan that did not run, because of err.
func (p *Plan) standStill(ctx context.Context, how pass, err error) (*Report, error) {
	w := p.newWalk(how)
	for s := range how.order(p.Steps) {
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	}
	return w.report, w.report.fail(err)
}

// step decides whether s runs at all, and runs it.
func (w *walk) step(ctx context.Context, s *Step) {
	w.inherit(s)
	switch cause, blocked := w.cause[s.Name]; {
	case s.Skip && (w.journal == nil || !w.reverse):
		w.done(ctx, Result{Step: s.Name, Status: Skipped, Reason: s.SkipReason})
	case blocked:
		w.done(ctx, Result{Step: s.Name, Status: Blocked, Err: blockedBy(cause)})
	case w.stopped:
		w.done(ctx, Result{Step: s.Name, Status: NotRun})
	case ctx.Err() != nil:
		w.stopped = true
		failure := newStepError(s.Name, "start", ended(ctx))
		w.errs = append(w.errs, failure)
		w.done(ctx, Result{Step: s.Name, Status: NotRun, Err: failure})
	default:
		w.run(ctx, s)
	}
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

func (w *walk) run(ctx context.Context, s *Step) {
	ctx = w.trace.stepStart(ctx, w.op, s.Name)
	if w.journal != nil {
		ctx = w.journal.WithStep(ctx, s.Name)
	}
	start := time.Now()
	r := w.bounded(ctx, s)
	r.Step = s.Name
	r.Elapsed = time.Since(start)
	w.done(ctx, w.account(ctx, s, r))
}

// bounded does s within its timeout.
func (w *walk) bounded(ctx context.Context, s *Step) Result {
	if s.Timeout == 0 {
		return w.do(w, ctx, s)
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r := w.do(w, limited, s)
	var failure *StepError
	if limited.Err() != nil && ctx.Err() == nil && errors.As(r.Err, &failure) {
		failure.Err = fmt.Errorf("%w (the step's timeout is %s)", failure.Err, s.Timeout)
		if failure.Code == code.PlanFailed {
			failure.Code = code.PlanTimeout
		}
	}
	return r
}

// account settles what a result means for the rest of the walk.
func (w *walk) account(ctx context.Context, s *Step, r Result) Result {
	switch {
	case r.Status == WouldChange:
		w.pending[s.Name] = true
	case r.Status != Failed:
	case w.pending[s.Name] && ctx.Err() == nil, s.Absent && w.op == OpCheck && len(w.pending) > 0: // what goes before it is still there
		r.Status = Unknown
	case s.Absent && !w.reverse && r.onlyKept():
		return r.keeping()
	default:
		w.cause[s.Name] = s.Name
		r.Excused = s.Optional && !w.reverse
		if !r.Excused {
			w.errs = append(w.errs, r.Err)
			w.stopped = w.stops && !s.Absent || w.op == OpApply && endsPlan(ctx, r.Err)
		}
	}
	return r
}

func (w *walk) done(ctx context.Context, r Result) {
	w.report.Results = append(w.report.Results, r)
	w.trace.stepDone(ctx, w.op, r)
}
