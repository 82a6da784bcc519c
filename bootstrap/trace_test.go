// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

type traceKey struct{}

// telling is a trace that logs its calls and marks its contexts.
func telling(name string, log *[]string) *bootstrap.Trace {
	say := func(ctx context.Context, what string) {
		own, _ := ctx.Value(traceKey{}).(string)
		*log = append(*log, name+": "+what+" in "+own)
	}
	mark := func(ctx context.Context, by string) context.Context {
		own, _ := ctx.Value(traceKey{}).(string)
		return context.WithValue(ctx, traceKey{}, own+by)
	}
	return &bootstrap.Trace{
		PlanStart: func(ctx context.Context, op string) context.Context {
			say(ctx, "start "+op)
			return mark(ctx, name)
		},
		PlanDone: func(ctx context.Context, r *bootstrap.Report) { say(ctx, "done "+r.Op+", "+r.Summary()) },
		StepStart: func(ctx context.Context, op, step string) context.Context {
			say(ctx, "start "+op+" "+step)
			return mark(ctx, step)
		},
		StepDone: func(ctx context.Context, op string, r bootstrap.Result) {
			say(ctx, "done "+op+" "+r.Step+" "+string(r.Status))
		},
		Waiting: func(ctx context.Context, step, what string, _ time.Duration) { say(ctx, step+" waits for "+what) },
	}
}

func TestJoinTraces(t *testing.T) {
	var log []string
	a := todo()
	a.Hook = func(ctx context.Context, _ string) error {
		bootstrap.Waiting(ctx, "more", 0)
		return nil
	}
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("a", a)},
		Trace: bootstrap.JoinTraces(telling("1", &log), nil, &bootstrap.Trace{}, telling("2", &log)),
	}
	_, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"1: start check in ", "2: start check in 1",
		"1: start check a in 12", "2: start check a in 12a",
		"1: a waits for more in 12aa", "2: a waits for more in 12aa",
		"2: done check a would-change in 12aa", "1: done check a would-change in 12aa",
		"2: done check, 1 step: would-change in 12", "1: done check, 1 step: would-change in 12",
	}, log)
}

func TestTraceIsNilSafe(t *testing.T) {
	for name, trace := range map[string]*bootstrap.Trace{
		"no trace":  nil,
		"no hooks":  {},
		"no logger": bootstrap.LogTrace(nil),
		"joined":    bootstrap.JoinTraces(),
		"nil context": {
			PlanStart: func(context.Context, string) context.Context { return nil },
			StepStart: func(context.Context, string, string) context.Context { return nil },
		},
	} {
		a := todo()
		a.Hook = func(ctx context.Context, _ string) error { bootstrap.Waiting(ctx, "", 0); return nil }
		plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", a), skipped(step("b", nil))}, Trace: trace}
		report, err := plan.Apply(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, lines("a changed", "b skipped"), statuses(report), name)
	}
}

func TestLogTrace(t *testing.T) {
	var b bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "elapsed" {
				return slog.Attr{}
			}
			return a
		},
	}))
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{
			step("a", todo()), optional(step("b", broken())), step("c", todo(), "b"), step("d", &bootstraptest.Script{}),
		},
		Trace: bootstrap.LogTrace(logger),
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		`level=DEBUG msg="plan started" op=apply`,
		`level=DEBUG msg="step started" op=apply step=a`,
		`level=INFO msg="step done" op=apply step=a status=changed changes="[do it]"`,
		`level=DEBUG msg="step started" op=apply step=b`,
		`level=ERROR msg="step done" op=apply step=b status=failed error="step b: apply: boom" code=plan.failed`,
		`level=WARN msg="step done" op=apply step=c status=blocked error="it comes after step b, which failed"`,
		`level=DEBUG msg="step started" op=apply step=d`,
		`level=DEBUG msg="step done" op=apply step=d status=unchanged`,
		`level=INFO msg="plan done" op=apply summary="4 steps: 1 unchanged, 1 changed, 1 failed, 1 blocked"`,
	}, strings.Split(strings.TrimSpace(b.String()), "\n"))

	b.Reset()
	plan.Steps = []bootstrap.Step{step("a", todo())}
	plan.Prepare = func(context.Context, *bootstrap.Plan) error { return errBoom }
	_, err = plan.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Contains(t, b.String(), `level=ERROR msg="plan done" op=apply summary="1 step: not-run" error=boom`)

	b.Reset()
	plan.Steps, plan.Prepare = []bootstrap.Step{step("d", &bootstraptest.Script{})}, nil
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.NotContains(t, b.String(), "level=INFO", "nothing changes")
}

// An agent that converges every minute does not repeat its advice each minute.
func TestLogTraceWarnsOfTheSameAdviceOnce(t *testing.T) {
	var b bytes.Buffer
	advice := []string{"look at it"}
	trace := bootstrap.LogTrace(slog.New(slog.NewTextHandler(&b, nil)))
	for _, tc := range []struct {
		advice []string
		warns  bool
	}{{advice, true}, {advice, false}, {[]string{"and at that"}, true}, {nil, false}, {advice, true}, {advice, false}} {
		b.Reset()
		trace.StepDone(t.Context(), "apply", bootstrap.Result{Step: "a", Status: bootstrap.Unchanged, Advice: tc.advice})
		require.Equal(t, tc.warns, strings.Contains(b.String(), "level=WARN"), b.String())
	}
	trace.StepDone(t.Context(), "apply", bootstrap.Result{Step: "a", Status: bootstrap.Changed, Advice: advice})
	require.Contains(t, b.String(), "level=WARN", "what changed is told with its advice")
}
