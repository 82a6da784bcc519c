// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package prom counts a plan's runs for Prometheus. It is a module of its own,
// so that only programs that import it get its dependencies.
//
//	trace, err := prom.Trace(prometheus.DefaultRegisterer)
//	plan.Trace = bootstrap.JoinTraces(trace, bootstrap.LogTrace(logger))
//
// The metrics, all with the label op (check, apply, check-revert, revert):
//
//	slipway_plan_runs_total{outcome}           runs: unchanged, changed or failed
//	slipway_plan_failures_total{code}          runs that failed, by the stable code of their cause
//	slipway_plan_duration_seconds              histogram, with all waiting
//	slipway_plan_last_success_timestamp_seconds  when a run last ended without a failure
//	slipway_step_runs_total{step,status}       steps, by status
//	slipway_step_duration_seconds{step}        histogram, of steps that were tried
//	slipway_waits_total{step}                  waits, and again every few seconds that one lasts
//
// A Trace may serve any number of plans. It needs no privilege. Do not use it if step
// names come from outside the program: each makes series of its own. Codes are those of
// CODES.md, and of actions that have their own.
package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/bootstrap"
)

// seconds are the histograms' buckets: from half a millisecond, in which a step
// finds nothing to do, to the minutes in which one waits for an API server.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

type metrics struct {
	runs, failures, steps, waits *prometheus.CounterVec
	runSeconds, stepSeconds      *prometheus.HistogramVec
	success                      *prometheus.GaugeVec
}

// Trace registers the metrics with r and returns a trace that updates them. Metrics that
// an earlier Trace has registered with r are shared; others of the same names are an
// error.
func Trace(r prometheus.Registerer) (*bootstrap.Trace, error) {
	if r == nil {
		return nil, errors.New("prom: no registerer was given")
	}
	m := &metrics{
		runs:        counter("slipway_plan_runs_total", "Runs of plans, by outcome.", "op", "outcome"),
		failures:    counter("slipway_plan_failures_total", "Runs of plans that failed, by the code of their cause.", "op", "code"),
		steps:       counter("slipway_step_runs_total", "Steps of plans, by status.", "op", "step", "status"),
		waits:       counter("slipway_waits_total", "Waits, and again every few seconds that one lasts.", "step"),
		runSeconds:  histogram("slipway_plan_duration_seconds", "How long runs took, with all waiting.", "op"),
		stepSeconds: histogram("slipway_step_duration_seconds", "How long tried steps took.", "op", "step"),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "slipway_plan_last_success_timestamp_seconds", Help: "When a run last ended without a failure.",
		}, []string{"op"}),
	}
	err := errors.Join(share(r, &m.runs), share(r, &m.failures), share(r, &m.steps), share(r, &m.waits), share(r, &m.runSeconds), share(r, &m.stepSeconds), share(r, &m.success))
	if err != nil {
		return nil, err
	}
	return &bootstrap.Trace{PlanDone: m.planDone, StepDone: m.stepDone, Waiting: m.waiting, Records: true}, nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
}

// share registers *c, or makes it the one that is registered already.
func share[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if same, ok := already.ExistingCollector.(C); ok {
			*c = same
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("prom: %w", err)
	}
	return nil
}

func (m *metrics) planDone(_ context.Context, r *bootstrap.Report) {
	op, outcome := r.Op, "unchanged"
	switch _, cause := r.Cause(); {
	case cause != nil:
		outcome = "failed"
		m.failures.WithLabelValues(op, bootstrap.Code(cause)).Inc()
	case r.Changed():
		outcome = "changed"
	}
	m.runs.WithLabelValues(op, outcome).Inc()
	m.runSeconds.WithLabelValues(op).Observe(r.Elapsed.Seconds())
	if outcome != "failed" {
		m.success.WithLabelValues(op).Set(float64(r.Start.Add(r.Elapsed).UnixMilli()) / 1000)
	}
}

func (m *metrics) stepDone(_ context.Context, op string, r bootstrap.Result) {
	m.steps.WithLabelValues(op, r.Step, string(r.Status)).Inc()
	if r.Elapsed > 0 {
		m.stepSeconds.WithLabelValues(op, r.Step).Observe(r.Elapsed.Seconds())
	}
}

func (m *metrics) waiting(_ context.Context, step, _ string, _ time.Duration) {
	m.waits.WithLabelValues(step).Inc()
}
