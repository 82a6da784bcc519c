// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// The operations of a plan: what it is run for.
const (
	opCheck       = "check"
	opApply       = "apply"
	opCheckRevert = "check-revert"
	opRevert      = "revert"
)

// opPrepare is what a step's Prepare does.
const opPrepare = "prepare"

// Trace is a set of hooks that a plan calls while it runs. Any hook may be nil.
// Hooks are called one after the other and, but for Waiting, on the goroutine that runs
// the plan. A context that a hook returns must be derived from the one that it got; to keep
// that one, a hook may return nil. The op is that of the report, as in [Report].Op.
type Trace struct {
	// PlanStart is called first, before the plan is prepared and locked. Everything
	// else in the run gets the context that it returns.
	PlanStart func(ctx context.Context, op string) context.Context

	// PlanDone is called last, with the report of the whole run.
	PlanDone func(ctx context.Context, r *Report)

	// StepStart is called before a step is tried. The action and StepDone get the
	// context that it returns.
	StepStart func(ctx context.Context, op, step string) context.Context

	// Checking is called before a step's Prepare, and before each check of the look at all
	// steps that comes before an apply. These tell nothing else: what hangs there can be named.
	Checking func(ctx context.Context, step string)

	// StepDone is called once for each step of the plan, in the order of the report,
	// including steps that were not tried.
	StepDone func(ctx context.Context, op string, r Result)

	// Waiting is called when the run begins to wait for something, such as "the lock, which
	// ...", or a gate with what it sees (see [Waiting]), and then every few seconds, also for a
	// step that has taken ten seconds. Step is the step that waits. It is empty if no step has
	// started yet, for example while another process holds the node's lock. AtMost is the
	// longest that the wait may still take, zero if that is not known.
	//
	// It alone may be called from another goroutine, but never while another hook is called.
	// If it is nil, what is waited for longer than ten seconds is said on standard error, at
	// growing intervals: set it to say that elsewhere.
	Waiting func(ctx context.Context, step, what string, atMost time.Duration)

	// Records says that Waiting only keeps waits, for a metric or a picture: they are said on
	// standard error all the same.
	Records bool
}

// Waiting says that the plan and the step that ctx belongs to wait, until the returned
// function is called or ctx ends: see [Trace].Waiting. Actions that may take long call it
// before they wait. Outside of a plan, it says so on standard error.
func Waiting(ctx context.Context, what string, atMost time.Duration) (end func()) {
	w := &waiting.Wait{}
	w.For(ctx, what, atMost)
	forget := context.AfterFunc(ctx, w.End)
	return func() { forget(); w.End() }
}

// WithTrace returns a context in which t is told what is waited for outside of plans, too,
// as when a configuration is read. Of its hooks, only Waiting is called.
func WithTrace(ctx context.Context, t *Trace) context.Context { return t.in(ctx, "") }

// in returns the context of a step of the run that t traces; "": of the run itself.
func (t *Trace) in(ctx context.Context, step string) context.Context {
	if t == nil || t.Waiting == nil {
		return waiting.With(ctx, nil, false)
	}
	return waiting.With(ctx, func(ctx context.Context, what string, atMost time.Duration) {
		t.Waiting(ctx, step, what, atMost)
	}, t.Records)
}

// JoinTraces returns a Trace that calls the hooks of all traces, in the order
// given. Only PlanDone and StepDone are called in reverse order, so that each trace
// sees the contexts that it returned. All its hooks are set, but for Waiting if no trace has it.
func JoinTraces(traces ...*Trace) *Trace {
	traces = slices.DeleteFunc(slices.Clone(traces), func(t *Trace) bool { return t == nil })
	joined := joinWaiting(traces)
	joined.PlanStart = func(ctx context.Context, op string) context.Context {
		for _, t := range traces {
			if t.PlanStart != nil {
				ctx = cmp.Or(t.PlanStart(ctx, op), ctx)
			}
		}
		return ctx
	}
	joined.PlanDone = func(ctx context.Context, r *Report) {
		for _, t := range slices.Backward(traces) {
			if t.PlanDone != nil {
				t.PlanDone(ctx, r)
			}
		}
	}
	joined.StepStart = func(ctx context.Context, op, step string) context.Context {
		for _, t := range traces {
			if t.StepStart != nil {
				ctx = cmp.Or(t.StepStart(ctx, op, step), ctx)
			}
		}
		return ctx
	}
	joined.Checking = func(ctx context.Context, step string) {
		for _, t := range traces {
			if t.Checking != nil {
				t.Checking(ctx, step)
			}
		}
	}
	joined.StepDone = func(ctx context.Context, op string, r Result) {
		for _, t := range slices.Backward(traces) {
			if t.StepDone != nil {
				t.StepDone(ctx, op, r)
			}
		}
	}
	return joined
}

// joinWaiting joins what traces do when the run waits. Only if all just record that, it is said on
// standard error too.
func joinWaiting(traces []*Trace) *Trace {
	joined := &Trace{Records: true}
	for _, t := range traces {
		if before := joined.Waiting; t.Waiting != nil {
			joined.Records = joined.Records && t.Records
			joined.Waiting = func(ctx context.Context, step, what string, atMost time.Duration) {
				if before != nil {
					before(ctx, step, what, atMost)
				}
				t.Waiting(ctx, step, what, atMost)
			}
		}
	}
	return joined
}

// LogTrace returns a Trace that logs runs and their steps. At level Error: steps
// that failed, and a plan that could not run. At Warn: steps that are unknown,
// blocked or were not run, advice, and waits. At Info: what changed or would change.
// Everything else is at Debug, also the advice of an unchanged step that the same
// Trace has just logged: the further runs of a loop that change nothing log at that level
// only. What failed has its code (see [Code]) as the attribute "code". If l is
// nil, the Trace has no hooks.
func LogTrace(l *slog.Logger) *Trace {
	if l == nil {
		return &Trace{}
	}
	var said sync.Map // step: the advice of its last result
	return &Trace{
		PlanStart: func(ctx context.Context, op string) context.Context {
			l.DebugContext(ctx, "plan started", "op", op)
			return ctx
		},
		PlanDone: func(ctx context.Context, r *Report) { logReport(ctx, l, r) },
		StepStart: func(ctx context.Context, op, step string) context.Context {
			l.DebugContext(ctx, "step started", "op", op, "step", step)
			return ctx
		},
		StepDone: func(ctx context.Context, op string, r Result) {
			last, _ := said.Swap(r.Step, r.Advice)
			before, _ := last.([]string)
			logResult(ctx, l, op, r, !slices.Equal(before, r.Advice))
		},
		Waiting: func(ctx context.Context, step, what string, atMost time.Duration) {
			l.LogAttrs(ctx, slog.LevelWarn, "waiting", given(
				slog.String("for", what), slog.String("step", step), slog.Duration("pause", atMost),
			)...)
		},
	}
}

func logReport(ctx context.Context, l *slog.Logger, r *Report) {
	_, cause := r.Cause()
	level := slog.LevelDebug
	switch {
	case errors.Is(r.Err, ledger.ErrRevoked): // a newer owner has the node, or it was uninstalled
		level = slog.LevelInfo
	case r.Err != nil:
		level = slog.LevelError
	case r.Changed():
		level = slog.LevelInfo
	}
	l.LogAttrs(ctx, level, "plan done", given(
		slog.String("op", r.Op), slog.String("summary", r.Summary()), slog.Duration("elapsed", r.Elapsed),
		slog.Any("error", r.Err), slog.String("code", Code(cause)),
	)...)
}

// logResult logs the result of a step; news says that its advice is not that of the last one.
func logResult(ctx context.Context, l *slog.Logger, op string, r Result, news bool) {
	level := slog.LevelDebug
	switch {
	case r.Status == Failed && !errors.Is(r.Err, ledger.ErrMissing):
		level = slog.LevelError
	case slices.Contains([]Status{Failed, Unknown, Blocked, NotRun}, r.Status), len(r.Advice) > 0 && (news || r.Status != Unchanged):
		level = slog.LevelWarn
	case r.Status == Changed, r.Status == WouldChange:
		level = slog.LevelInfo
	}
	l.LogAttrs(ctx, level, "step done", given(
		slog.String("op", op), slog.String("step", r.Step), slog.String("status", string(r.Status)), slog.Duration("elapsed", r.Elapsed),
		slog.Any("changes", r.Changes), slog.Any("adopted", r.Adopted), slog.Any("advice", r.Advice),
		slog.Any("error", r.Err), slog.String("code", r.code()), slog.String("reason", r.Reason),
	)...)
}

// given leaves out what is empty.
func given(attrs ...slog.Attr) []slog.Attr {
	return slices.DeleteFunc(attrs, func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case nil:
			return true
		case string:
			return v == ""
		case []string:
			return len(v) == 0
		case time.Duration:
			return v == 0 && a.Key == "pause"
		}
		return false
	})
}
