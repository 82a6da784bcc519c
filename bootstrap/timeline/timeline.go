// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package timeline draws the runs of a plan as one SVG image: a bar for each step on a
// common time axis, colored by status.
//
//	var timeline timeline.Recorder
//	plan.Trace = bootstrap.JoinTraces(plan.Trace, timeline.Trace())
//	_, err := plan.Apply(ctx)
//	err = errors.Join(err, timeline.WriteFile("start.svg"))
//
// [Recorder.Begin] adds a bar for work outside the plan, such as resolving the
// configuration.
//
// # Needs
//
// Nothing: no privilege, no network, no fonts, styles or scripts. It works on every
// system. [Recorder.WriteFile] writes in the calling thread's mount namespace.
//
// # When not to use it
//
// In a long-running program: a Recorder keeps each step of each run. Use bootstrap/prom
// and bootstrap/otel for its metrics and spans.
package timeline

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// Recorder records when runs, steps and other work began and ended. The zero value is
// ready to use, for any number of plans one after the other, by several goroutines.
type Recorder struct {
	mu     sync.Mutex
	rows   []*row
	looked map[string]time.Time // when the looks at steps have begun, before an apply
	waited *wait                // the wait that has not ended
}

// row is one line of the picture.
type row struct {
	name       string
	run        bool      // of a whole plan
	begin, end time.Time // both zero: not tried
	status     string    // "" while it goes on
	details    []string
	waits      []*wait
}

type wait struct {
	begin, end time.Time
	what       string
}

// Begin records the begin of some work, and returns a function to call with the outcome
// when it has ended.
func (r *Recorder) Begin(name string) (end func(status bootstrap.Status, details ...string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	started := r.start(name)
	return func(status bootstrap.Status, details ...string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.finish(started, string(status), details)
	}
}

// Trace returns the hooks to be given to a plan.
func (r *Recorder) Trace() *bootstrap.Trace {
	return &bootstrap.Trace{
		PlanStart: func(ctx context.Context, op string) context.Context {
			r.mu.Lock()
			defer r.mu.Unlock()
			started := r.start(op)
			started.run = true
			return context.WithValue(ctx, rowKey{r}, started)
		},
		StepStart: func(ctx context.Context, _ string, step string) context.Context {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.resume()
			return context.WithValue(ctx, rowKey{r}, r.start(step))
		},
		Checking: func(_ context.Context, step string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.looked == nil {
				r.looked = map[string]time.Time{}
			}
			r.looked[step] = time.Now()
		},
		StepDone: func(ctx context.Context, _ string, result bootstrap.Result) {
			r.mu.Lock()
			defer r.mu.Unlock()
			started := r.rowOf(ctx)
			if started == nil || started.run { // it was not tried
				started = &row{name: result.Step}
				r.rows = append(r.rows, started)
			}
			r.finish(started, string(result.Status), result.Details())
			begin, looked := r.looked[result.Step]
			if looked && started.end.Sub(started.begin) < result.Elapsed { // which is told after the look at all steps
				started.begin, started.end = begin, begin.Add(result.Elapsed)
			}
		},
		Records: true,
		Waiting: func(ctx context.Context, _, what string, _ time.Duration) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if waits := r.rowOf(ctx); waits != nil {
				r.resume()
				r.waited = &wait{begin: time.Now(), what: what}
				waits.waits = append(waits.waits, r.waited)
			}
		},
		PlanDone: func(ctx context.Context, report *bootstrap.Report) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if plan := r.rowOf(ctx); plan != nil {
				r.finish(plan, string(outcome(report)), reportLines(report))
			}
		},
	}
}

// outcome is the status of a whole run.
func outcome(report *bootstrap.Report) bootstrap.Status {
	switch {
	case report.Failed():
		return bootstrap.Failed
	case report.Count(bootstrap.WouldChange) > 0:
		return bootstrap.WouldChange
	case report.Changed():
		return bootstrap.Changed
	}
	return bootstrap.Unchanged
}

func reportLines(report *bootstrap.Report) []string {
	if report.Err != nil {
		return []string{report.Err.Error(), report.Summary()}
	}
	return []string{report.Summary()}
}

// rowKey is the context key of the current run or step. Each recorder has its own, since
// several may be joined.
type rowKey struct{ *Recorder }

// rowOf returns the row of the innermost current run or step, or nil.
func (r *Recorder) rowOf(ctx context.Context) *row {
	of, _ := ctx.Value(rowKey{r}).(*row)
	return of
}

func (r *Recorder) start(name string) *row {
	started := &row{name: name, begin: time.Now()}
	r.rows = append(r.rows, started)
	return started
}

func (r *Recorder) finish(done *row, status string, details []string) {
	r.resume()
	if !done.begin.IsZero() {
		done.end = time.Now()
	}
	done.status, done.details = status, details
}

// resume ends the current wait.
func (r *Recorder) resume() {
	if r.waited != nil {
		r.waited.end = time.Now()
		r.waited = nil
	}
}
