// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// errContested means that another program, such as another agent, undoes the repairs.
var errContested = code.New(code.PlanContested, "another program undoes each repair")

// running is a Loop that runs.
type running struct {
	Loop
	plan    bootstrap.Plan   // without the gates that were passed
	steps   []bootstrap.Step // of the last run that completed them
	watched []*watched       // of these
	ledger  []*watched       // one, or none
	failed  error            // that of the last run

	isPreparing bool
	pending     []func() // calls of Done
}

// callDone calls Done, but not while the program is busy with Prepare.
func (r *running) callDone(report *bootstrap.Report, err error) {
	if r.Done == nil {
		return
	}
	err = errors.Join(r.failed, err)
	r.pending = append(r.pending, func() { r.Done(report, err) })
	if r.isPreparing {
		return
	}
	for _, call := range r.pending {
		call()
	}
	r.pending = nil
}

// prepare is the plan's Prepare, and has its steps' go the same way.
func (r *running) prepare(ctx, within context.Context, p *bootstrap.Plan) (err error) {
	if own := r.Plan.Prepare; own != nil {
		err = r.meanwhile(ctx, func() error { return own(within, p) })
	}
	for i, s := range p.Steps {
		if s.Prepare == nil {
			continue
		}
		p.Steps[i].Prepare = func(within context.Context) (wants ledger.Wanter, err error) {
			err = r.meanwhile(ctx, func() (err error) { wants, err = s.Prepare(within); return err })
			return wants, err
		}
	}
	return err
}

// meanwhile calls f on a goroutine of its own, and repairs until it returns: it may wait for a
// server that is away. Whether the loop is over, the run will see that f belongs to.
func (r *running) meanwhile(ctx context.Context, f func() error) (err error) {
	until, end := context.WithCancel(context.Background())
	go func() {
		defer end()
		err = f()
	}()
	r.isPreparing = true
	r.keep(ctx, until)
	<-until.Done()
	r.isPreparing = false
	return err
}

// wait repairs until the next run is due. IsOver says that the loop ends.
func (r *running) wait(ctx context.Context, pause time.Duration) (isOver bool) {
	until, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	return r.keep(ctx, until) || ctx.Err() != nil
}

// keep repairs until a context ends, or a run is due for another reason.
func (r *running) keep(ctx, until context.Context) (isOver bool) {
	for isDue := false; !isDue && ctx.Err() == nil && until.Err() == nil; {
		var changed []*watched
		err := r.plan.Host.Do(until, []string{"mnt"}, func(context.Context) error {
			changed, isDue = r.watch(until, slices.Concat(r.ledger, r.watched))
			return nil
		})
		if err != nil && until.Err() == nil { // the next run says why the host cannot be entered
			changed, isDue = r.watch(until, nil)
		}
		for _, w := range changed {
			switch {
			case w.isApplied:
				isOver = isOver || r.repair(ctx, w)
			default: // what was missing may have come
				isDue = isDue || w.seen != nil
				w.attended()
			}
		}
		isDue = isDue || isOver
	}
	return isOver
}

// watch returns what has changed, once something has, or that a run is due.
func (r *running) watch(until context.Context, all []*watched) (changed []*watched, isDue bool) {
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	if len(all) == 0 {
		looks.Stop()
	}
	for len(changed) == 0 {
		trigger := r.Trigger
		if r.isPreparing {
			trigger = nil
		}
		select {
		case <-until.Done():
			return nil, true
		case _, isOpen := <-trigger:
			if isOpen {
				return nil, true
			}
			r.Trigger = nil
		case <-looks.C:
			changed = slices.DeleteFunc(slices.Clone(all), func(w *watched) bool { return !w.look() })
		}
	}
	return changed, false
}

// watchSteps watches what the steps of a run want. A step that fails now is still repaired as it was
// applied before.
func (r *running) watchSteps(report *bootstrap.Report) {
	if report.Steps == nil {
		return
	}
	before := r.watched
	r.steps, r.watched = report.Steps, nil
	for _, s := range report.Steps {
		w := &watched{step: s}
		if i := slices.IndexFunc(before, func(w *watched) bool { return w.step.Name == s.Name }); i >= 0 {
			w = before[i]
		}
		switch result := resultOf(report, s.Name); {
		case s.Skip != "" || s.Absent:
			continue
		case result.Status == bootstrap.Changed, result.Status == bootstrap.Unchanged:
			w.step, w.places, w.seen, w.isApplied = s, placesOf(result), nil, true
		case w.places == nil:
			w.places = placesOf(result)
		}
		if len(w.places) > 0 {
			r.watched = append(r.watched, w)
		}
	}
}

// repair applies a step again, as it was applied last, if it differs.
func (r *running) repair(ctx context.Context, w *watched) (isOver bool) {
	p := *r.Plan
	p.Gates, p.Prepare, p.Trace, p.Steps = nil, nil, nil, slices.Clone(r.steps)
	for i, s := range p.Steps {
		if s.Name == w.step.Name {
			p.Steps[i] = w.step
			p.Steps[i].After = nil // what it needs is there, and may be a gate
			continue
		}
		p.Steps[i] = bootstrap.Step{Name: s.Name, Skip: "another step is repaired"}
	}
	report, err := p.Check(ctx)
	if err != nil && !errors.Is(err, ledger.ErrRevoked) || report.Changed() {
		if !r.isPreparing {
			p.Trace = r.Plan.Trace
		}
		report, err = p.Apply(ctx)
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, ledger.ErrRevoked):
		return true
	case err != nil:
		if w.hasTried(err.Error(), true) == 1 {
			r.callDone(report, err)
		}
	case !report.Changed():
		if w.retries { // another program has mended it
			w.outcome = ""
			r.callDone(report, nil)
		}
		w.attended()
	case w.hasTried(strings.Join(resultOf(report, w.step.Name).Changes, "\n"), false) == contestAfter+1:
		r.callDone(report, fmt.Errorf("step %s: %w: repairing it more and more rarely, down to once in %v", w.step.Name, errContested, longest))
	default:
		r.callDone(report, nil)
	}
	return false
}

// hasTried notes an attempt, and returns how often in a row it had this outcome: that tells a
// contest from a series of accidents.
func (w *watched) hasTried(outcome string, hasFailed bool) (often int) {
	now := time.Now()
	if outcome != w.outcome || now.Sub(w.due) > contestEnds {
		w.outcome, w.often = outcome, 0
	}
	w.attended()
	w.often++
	w.retries, w.due = hasFailed, now
	if hasFailed {
		w.due = now.Add(growing(retry, w.often-1, longest))
		return w.often
	}
	w.seen = nil // it may have been changed again before the next look
	if w.often > contestAfter {
		w.due = now.Add(growing(lookEvery, w.often-contestAfter, longest))
	}
	return w.often
}
