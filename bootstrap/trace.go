// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"log/slog"
)

// Trace is told how a plan runs, while it runs. Any hook may be nil. Hooks are
// called one after the other, on the goroutine that runs the plan.
type Trace struct {
	// StepStart is called before a step is tried. The context that it returns
	// is the one that the action and StepDone get; it must come from ctx. Nil
	// stands for ctx itself.
	StepStart func(ctx context.Context, step string) context.Context

	// StepDone is called once for each step of the plan, in the order of the
	// report, also for steps that were not tried.
	StepDone func(ctx context.Context, r Result)
}

func (t *Trace) start(ctx context.Context, step string) context.Context {
	if t == nil || t.StepStart == nil {
		return ctx
	}
	if own := t.StepStart(ctx, step); own != nil {
		return own
	}
	return ctx
}

func (t *Trace) done(ctx context.Context, r Result) {
	if t != nil && t.StepDone != nil {
		t.StepDone(ctx, r)
	}
}

// LogTrace returns a Trace that logs each step: its start at debug level, its
// result as an error if it failed, as a warning if it is unknown, blocked or
// was not run, else as information. The attributes are step, status, elapsed,
// changes and error, the last two where there are any. A nil logger makes a Trace
// without hooks.
func LogTrace(l *slog.Logger) *Trace {
	if l == nil {
		return &Trace{}
	}
	return &Trace{
		StepStart: func(ctx context.Context, step string) context.Context {
			l.DebugContext(ctx, "step started", "step", step)
			return ctx
		},
		StepDone: func(ctx context.Context, r Result) { logResult(ctx, l, r) },
	}
}

func logResult(ctx context.Context, l *slog.Logger, r Result) {
	attrs := []slog.Attr{
		slog.String("step", r.Step),
		slog.String("status", string(r.Status)),
		slog.Duration("elapsed", r.Elapsed),
	}
	if len(r.Changes) > 0 {
		attrs = append(attrs, slog.Any("changes", r.Changes))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("error", r.Err))
	}
	level := slog.LevelInfo
	switch r.Status {
	case Failed:
		level = slog.LevelError
	case Unknown, Blocked, NotRun:
		level = slog.LevelWarn
	}
	l.LogAttrs(ctx, level, "step done", attrs...)
}
