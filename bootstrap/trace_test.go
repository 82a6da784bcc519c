// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

type traceKey struct{}

func TestTraceHooks(t *testing.T) {
	var log []string
	a := todo()
	a.Hook = func(ctx context.Context, call string) error {
		log = append(log, call+" of "+ctx.Value(traceKey{}).(string))
		return nil
	}
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("a", a), skipped(step("b", nil)), step("c", unreadable())},
		Trace: &bootstrap.Trace{
			StepStart: func(ctx context.Context, step string) context.Context {
				log = append(log, "start "+step)
				return context.WithValue(ctx, traceKey{}, step)
			},
			StepDone: func(ctx context.Context, r bootstrap.Result) {
				own, _ := ctx.Value(traceKey{}).(string)
				log = append(log, "done "+r.Step+" "+string(r.Status)+" in "+own)
			},
		},
	}
	_, err := plan.Check(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, []string{
		"start a", "check of a", "done a would-change in a",
		"done b skipped in ",
		"start c", "done c failed in c",
	}, log)
}

func TestTraceIsNilSafe(t *testing.T) {
	for name, trace := range map[string]*bootstrap.Trace{
		"no trace":    nil,
		"no hooks":    {},
		"no logger":   bootstrap.LogTrace(nil),
		"nil context": {StepStart: func(context.Context, string) context.Context { return nil }},
	} {
		plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo()), skipped(step("b", nil))}, Trace: trace}
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
		`level=DEBUG msg="step started" step=a`,
		`level=INFO msg="step done" step=a status=changed changes="[do it]"`,
		`level=DEBUG msg="step started" step=b`,
		`level=ERROR msg="step done" step=b status=failed changes="[do it]" error="step b: apply: boom"`,
		`level=WARN msg="step done" step=c status=blocked error="it comes after step b, which failed"`,
		`level=DEBUG msg="step started" step=d`,
		`level=INFO msg="step done" step=d status=unchanged`,
	}, strings.Split(strings.TrimSpace(b.String()), "\n"))
}
