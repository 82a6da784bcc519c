// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package prom_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/prom"
)

// heldError is an error with a code.
type heldError struct{}

func (heldError) Error() string { return "held" }
func (heldError) Code() string  { return "lock.held" }

func TestTraceCountsRunsAndSteps(t *testing.T) {
	registry := prometheus.NewRegistry()
	trace, err := prom.Trace(registry)
	require.NoError(t, err)
	again, err := prom.Trace(registry)
	require.NoError(t, err, "a second plan's")

	a := &bootstraptest.Script{Changes: []string{"do it"}, Hook: func(ctx context.Context, call string) error {
		if call == "apply" {
			bootstrap.Waiting(ctx, "a device", 0)
		}
		return nil
	}}
	plan := &bootstrap.Plan{Trace: trace, Steps: []bootstrap.Step{
		{Name: "a", Action: a}, {Name: "b", Skip: "asked for"},
		{Name: "c", Optional: true, Action: bootstrap.Func("fail", nil, nil)}, // its failure does not fail the run
	}}
	before := time.Now()
	for range 3 {
		_, err = plan.Apply(t.Context())
		require.NoError(t, err)
	}
	plan.Trace = again
	plan.Prepare = func(context.Context, *bootstrap.Plan) error { return heldError{} }
	_, err = plan.Apply(t.Context())
	require.Error(t, err)
	plan.Prepare, plan.Steps[0].Action = nil, bootstrap.Func("fail", nil, nil)
	_, err = plan.Check(t.Context())
	require.Error(t, err)

	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP slipway_plan_failures_total Runs of plans that failed, by the code of their cause.
# TYPE slipway_plan_failures_total counter
slipway_plan_failures_total{code="lock.held",op="apply"} 1
slipway_plan_failures_total{code="plan.unsupported",op="check"} 1
# HELP slipway_plan_runs_total Runs of plans, by outcome.
# TYPE slipway_plan_runs_total counter
slipway_plan_runs_total{op="apply",outcome="changed"} 1
slipway_plan_runs_total{op="apply",outcome="failed"} 1
slipway_plan_runs_total{op="apply",outcome="unchanged"} 2
slipway_plan_runs_total{op="check",outcome="failed"} 1
# HELP slipway_step_runs_total Steps of plans, by status.
# TYPE slipway_step_runs_total counter
slipway_step_runs_total{op="apply",status="changed",step="a"} 1
slipway_step_runs_total{op="apply",status="failed",step="c"} 3
slipway_step_runs_total{op="apply",status="not-run",step="a"} 1
slipway_step_runs_total{op="apply",status="not-run",step="b"} 1
slipway_step_runs_total{op="apply",status="not-run",step="c"} 1
slipway_step_runs_total{op="apply",status="skipped",step="b"} 3
slipway_step_runs_total{op="apply",status="unchanged",step="a"} 2
slipway_step_runs_total{op="check",status="failed",step="a"} 1
slipway_step_runs_total{op="check",status="failed",step="c"} 1
slipway_step_runs_total{op="check",status="skipped",step="b"} 1
# HELP slipway_waits_total Waits, and again every few seconds that one lasts.
# TYPE slipway_waits_total counter
slipway_waits_total{step="a"} 1
`), "slipway_plan_failures_total", "slipway_plan_runs_total", "slipway_step_runs_total", "slipway_waits_total"))

	values := map[string]float64{}
	counts := map[string]uint64{}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.Metric {
			name := family.GetName() + " " + m.Label[0].GetValue()
			values[name], counts[name] = m.GetGauge().GetValue(), m.GetHistogram().GetSampleCount()
		}
	}
	require.GreaterOrEqual(t, values["slipway_plan_last_success_timestamp_seconds apply"], float64(before.Unix()))
	require.NotContains(t, values, "slipway_plan_last_success_timestamp_seconds check")
	require.EqualValues(t, 4, counts["slipway_plan_duration_seconds apply"])
	require.EqualValues(t, 3, counts["slipway_step_duration_seconds apply"], "a step that did not run has no duration")
}

func TestTraceRefusesOthersMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "slipway_plan_runs_total", Help: "Another program's."}))
	_, err := prom.Trace(registry)
	require.ErrorContains(t, err, "slipway_plan_runs_total")
	_, err = prom.Trace(nil)
	require.ErrorContains(t, err, "no registerer")
}
