// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/bootstrap/textfile"
)

// longestReport bounds the report to the cluster. It is part of --timeout.
const longestReport = 10 * time.Second

// reporting calls run, sees to it that there is a report of the steps, and reports the
// result elsewhere too, if requested.
func (a *app) reporting(cmd *cobra.Command, op string, steps []string, run func() error) error {
	whole := cmd.Context()
	ctx, cancel := a.withoutReport(whole)
	defer cancel()
	cmd.SetContext(ctx)
	if err := a.writeMetrics(ctx, nil); err != nil { // before anything is changed
		a.logger().Warn("the result will not be reported", "error", err)
	}
	a.begins(op, steps)
	err := a.drawTimeline() // before anything is changed, too
	if err == nil && (op == "apply" || op == "revert") {
		err = needsRoot(os.Geteuid(), cmd.Name())
	}
	if err == nil {
		err = run()
	}
	switch {
	case a.shown, err == nil:
	case errors.As(err, new(usageError)):
		a.ran, _ = a.at.unfinished("prepare", err)
	default:
		err = a.unplanned(ctx, op, steps, err)
	}
	if whole.Err() != nil || op == "check-revert" {
		return err // it was asked to end, and has no time left
	}
	if failed := errors.Join(a.tellNode(whole, a.ran), a.writeMetrics(whole, a.ran)); failed != nil {
		a.logger().Warn("the result is not reported", "error", failed)
	}
	return err
}

// unplanned shows the report of a run that ended before it had a plan, as that of a plan of
// which no step could run. Its error is that of the step that was being prepared, if any.
func (a *app) unplanned(ctx context.Context, op string, steps []string, err error) error {
	if !errors.As(err, new(*bootstrap.StepError)) {
		_, err = a.at.unfinished("prepare", err)
	}
	p := a.plan(ctx)
	for _, name := range steps {
		p.Steps = append(p.Steps, bootstrap.Step{Name: name})
	}
	a.choose(p)
	p.Prepare = func(context.Context, *bootstrap.Plan) error { return err }
	return a.showPlan(ctx, p, func(p *bootstrap.Plan, ctx context.Context) (report *bootstrap.Report, err error) {
		if op == "apply" {
			return p.Apply(ctx) // which keeps the report
		}
		report, err = p.Check(ctx)
		report.Op = op
		return report, err
	})
}

// withoutReport returns ctx with a deadline that leaves time for the report.
func (a *app) withoutReport(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !a.reportNode {
		return context.WithCancel(ctx)
	}
	left := min(longestReport, a.timeout/4)
	return context.WithDeadlineCause(ctx, deadline.Add(-left), fmt.Errorf("--timeout of %s is nearly over, and the last %s are for the report", a.timeout, left))
}

func (a *app) tellNode(ctx context.Context, report *bootstrap.Report) error {
	if !a.reportNode {
		return nil
	}
	if !a.enableK8s {
		return errors.New("--report-node: there is no API server, since --enable-k8s is false")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longestReport, fmt.Errorf("the API server was tried for %s", longestReport))
	defer cancel()
	client, err := a.connection().Client()
	if err != nil {
		return fmt.Errorf("--report-node: %w", err)
	}
	to := kube.Reporter{Dynamic: client.Dynamic, Metadata: client.Metadata, Node: a.nodeName}
	switch {
	case report.Op != "revert" || report.Failed():
		outcome := kube.OutcomeOf(report)
		outcome.Agent = cmp.Or(outcome.Agent, a.agent)
		_, err = to.Report(ctx, outcome)
	case len(a.skip)+len(a.only) == 0: // the report on an agent that is undone in part stays
		_, err = to.Withdraw(ctx, report.Agent)
	}
	if err != nil {
		return fmt.Errorf("--report-node: %w", err)
	}
	return nil
}

// writeMetrics writes the report for node_exporter; nil: it looks for the directory only.
func (a *app) writeMetrics(ctx context.Context, report *bootstrap.Report) error {
	if a.reportMetrics == "" {
		return nil
	}
	err := a.host().Do(ctx, []string{"mnt"}, func(context.Context) error {
		if report == nil {
			_, err := os.Stat(filepath.Dir(a.reportMetrics))
			return err
		}
		return textfile.WriteFile(a.reportMetrics, report)
	})
	if err != nil {
		return fmt.Errorf("--report-metrics: %w", err)
	}
	return nil
}

// drawTimeline draws what is known of the run, if that is requested. After an error, which the
// end of the run would only repeat, nothing is drawn.
func (a *app) drawTimeline() error {
	if a.timelineFile == "" {
		return nil
	}
	err := a.timeline.WriteFile(a.timelineFile)
	if err != nil {
		a.timelineFile = ""
		return fmt.Errorf("--timeline: %w", err)
	}
	return nil
}
