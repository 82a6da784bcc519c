// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package otel makes OpenTelemetry spans of a plan's runs. It is a module of its
// own, so that only programs that import it get its dependencies.
//
//	plan.Trace = otel.Trace(provider.Tracer("agent"))
//
// A run is one span, "slipway " and the operation, and each step that is tried is
// a span below it, with its name. Attributes: slipway.op, slipway.step,
// slipway.status, slipway.changes, and of a run or a step that failed slipway.code, the
// stable code of its cause. A wait is an event, and a failure the span's error. The
// spans of what an action does itself come below the step's, since its context has it.
//
// It needs no privilege. Do not use it without a bound on what one run may export: a step
// that names thousands of changes has them all in its span.
package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/slipway-dev/slipway/bootstrap"
)

// Trace returns a trace that makes spans with t. If t is nil, it makes none.
func Trace(t trace.Tracer) *bootstrap.Trace {
	if t == nil {
		t = noop.NewTracerProvider().Tracer("")
	}
	return &bootstrap.Trace{
		PlanStart: func(ctx context.Context, op string) context.Context {
			ctx, _ = t.Start(ctx, "slipway "+op, trace.WithAttributes(attribute.String("slipway.op", op)))
			return ctx
		},
		PlanDone: planDone,
		StepStart: func(ctx context.Context, op, step string) context.Context {
			ctx, _ = t.Start(ctx, step, trace.WithAttributes(attribute.String("slipway.op", op), attribute.String("slipway.step", step)))
			return context.WithValue(ctx, triedKey{}, true)
		},
		StepDone: stepDone,
		Waiting:  waiting,
		Records:  true,
	}
}

func planDone(ctx context.Context, r *bootstrap.Report) {
	span := trace.SpanFromContext(ctx)
	switch {
	case r.Err != nil:
		span.RecordError(r.Err)
		span.SetStatus(codes.Error, r.Err.Error())
	case r.Failed():
		span.SetStatus(codes.Error, r.Summary())
	}
	if _, cause := r.Cause(); cause != nil {
		span.SetAttributes(attribute.String("slipway.code", bootstrap.Code(cause)))
	}
	span.End()
}

// triedKey marks the context of a step that is tried.
type triedKey struct{}

// stepDone ends the step's span. A step that was not tried has none: its context
// is the run's, which says so in an event.
func stepDone(ctx context.Context, _ string, r bootstrap.Result) {
	span := trace.SpanFromContext(ctx)
	status := attribute.String("slipway.status", string(r.Status))
	if ctx.Value(triedKey{}) == nil {
		span.AddEvent(r.Step, trace.WithAttributes(status))
		return
	}
	span.SetAttributes(status, attribute.StringSlice("slipway.changes", r.Changes))
	if r.Err != nil {
		span.RecordError(r.Err)
	}
	if r.Status == bootstrap.Failed {
		span.SetStatus(codes.Error, r.Err.Error())
		span.SetAttributes(attribute.String("slipway.code", bootstrap.Code(r.Err)))
	}
	span.End()
}

func waiting(ctx context.Context, _, what string, atMost time.Duration) {
	trace.SpanFromContext(ctx).AddEvent("waiting", trace.WithAttributes(
		attribute.String("slipway.for", what), attribute.Float64("slipway.pause_seconds", atMost.Seconds()),
	))
}
