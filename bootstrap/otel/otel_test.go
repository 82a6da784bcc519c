// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package otel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/otel"
)

func TestTraceMakesASpanOfEachRunAndStep(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
	boom := errors.New("boom")
	a := &bootstraptest.Script{Changes: []string{"do it"}}
	a.Hook = func(ctx context.Context, call string) error {
		if call == "apply" {
			bootstrap.Waiting(ctx, "a device: not yet", 0)
			_, span := tracer.Start(ctx, "inside")
			span.End()
		}
		return nil
	}
	plan := &bootstrap.Plan{Trace: otel.Trace(tracer), Steps: []bootstrap.Step{
		{Name: "a", Action: a},
		{Name: "b", Skip: "asked for"},
		{Name: "c", Action: &bootstraptest.Script{Errs: map[string][]error{"check": {nil, boom}}}}, // fails between the check of all steps and its own turn
		{Name: "d", Action: a},
	}}
	_, err := plan.Apply(t.Context())
	require.ErrorIs(t, err, boom)

	spans := map[string]trace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
	}
	require.Len(t, spans, 4)
	run := spans["slipway apply"]
	require.Equal(t, codes.Error, run.Status().Code)
	require.Contains(t, run.Attributes(), attribute.String("slipway.code", "plan.failed"))
	var events []string
	for _, e := range run.Events() {
		events = append(events, e.Name+" "+e.Attributes[0].Value.AsString())
	}
	require.Equal(t, []string{"b skipped", "d not-run"}, events)

	require.Equal(t, run.SpanContext().SpanID(), spans["a"].Parent().SpanID())
	require.Equal(t, spans["a"].SpanContext().SpanID(), spans["inside"].Parent().SpanID())
	require.Contains(t, spans["a"].Attributes(), attribute.String("slipway.status", "changed"))
	require.Contains(t, spans["a"].Attributes(), attribute.StringSlice("slipway.changes", []string{"do it"}))
	require.Contains(t, spans["a"].Attributes(), attribute.String("slipway.op", "apply"))
	require.Equal(t, "waiting", spans["a"].Events()[0].Name)
	require.Contains(t, spans["a"].Events()[0].Attributes, attribute.String("slipway.for", "a device: not yet"))
	require.Equal(t, codes.Unset, spans["a"].Status().Code)
	require.Equal(t, trace.Status{Code: codes.Error, Description: "step c: check: boom"}, spans["c"].Status())
	require.Contains(t, spans["c"].Attributes(), attribute.String("slipway.code", "plan.failed"))
	for _, a := range spans["a"].Attributes() {
		require.NotEqual(t, attribute.Key("slipway.code"), a.Key)
	}
}

func TestTraceOfAPlanThatCannotRun(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	plan := &bootstrap.Plan{
		Trace: otel.Trace(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")),
		Steps: []bootstrap.Step{{Name: "a"}},
	}
	_, err := plan.Check(t.Context())
	require.Error(t, err)
	require.Len(t, recorder.Ended(), 1)
	require.Equal(t, codes.Error, recorder.Ended()[0].Status().Code)
	require.Contains(t, recorder.Ended()[0].Attributes(), attribute.String("slipway.code", "plan.invalid"))

	plan.Trace = otel.Trace(nil)
	_, err = plan.Check(t.Context())
	require.Error(t, err)
}

func TestARunWhoseOptionalStepFailsIsNoError(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	plan := &bootstrap.Plan{
		Trace: otel.Trace(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")),
		Steps: []bootstrap.Step{{Name: "a", Optional: true, Action: bootstrap.Func("fail", nil, nil)}},
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Len(t, recorder.Ended(), 2)
	require.Equal(t, codes.Error, recorder.Ended()[0].Status().Code, "the step's")
	require.Equal(t, codes.Unset, recorder.Ended()[1].Status().Code, "the run's")
}
