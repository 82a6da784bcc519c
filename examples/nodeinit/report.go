// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/bootstrap/textfile"
)

// outcomeOptions select where the result of a run is reported.
type outcomeOptions struct {
	reportNode    bool
	reportMetrics string
	every         time.Duration

	ran *bootstrap.Report // the run's, when there was one
}

func (o *outcomeOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.reportNode, "report-node", false, "report the result to the cluster: by a condition and an annotation of the Node, sent when they change, and an Event for each new failure (needs get on nodes, patch on nodes/status, and create on events in the namespace default); a failure to report is a warning")
	f.StringVar(&o.reportMetrics, "report-metrics", "", "also write the result into this file, on the host, for node_exporter's textfile collector: a .prom; each agent has its own")
}

// longestReport bounds the report to the cluster. It is part of --timeout.
const longestReport = 10 * time.Second

// reporting calls run, and reports its result, if requested.
func (a *app) reporting(cmd *cobra.Command, op bootstrap.Op, run func() error) error {
	if !a.reportNode && a.reportMetrics == "" || op == bootstrap.OpCheckRevert {
		return run()
	}
	whole, start := cmd.Context(), time.Now()
	ctx, cancel := a.withoutReport(whole)
	defer cancel()
	cmd.SetContext(ctx)
	err := run()
	report := a.ran
	if report == nil { // the run ended before it had a plan
		report = &bootstrap.Report{Op: op, Agent: a.agent, Version: version(), Start: start, Elapsed: time.Since(start), Err: err}
	}
	if whole.Err() != nil {
		return err // it was asked to end, and has no time left
	}
	if failed := errors.Join(a.tellNode(whole, report), a.writeMetrics(whole, report)); failed != nil {
		a.logger().Warn("the result is not reported", "error", failed)
	}
	return err
}

// withoutReport returns ctx with a deadline that leaves time for the report.
func (a *app) withoutReport(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !a.reportNode {
		return context.WithCancel(ctx)
	}
	left := min(longestReport, a.timeout/4)
	return context.WithDeadlineCause(ctx, deadline.Add(-left), fmt.Errorf("--timeout of %s is over, but for %s to report it", a.timeout, left))
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
	if report.Op == bootstrap.OpRevert && !report.Failed() {
		err = a.withdraw(ctx, to, report.Agent)
	} else {
		outcome := kube.OutcomeOf(report)
		outcome.Agent = cmp.Or(outcome.Agent, a.agent)
		_, err = to.Report(ctx, outcome)
	}
	if err != nil {
		return fmt.Errorf("--report-node: %w", err)
	}
	return nil
}

// withdraw removes the reports on an agent that is no longer on the node, or on all agents.
// The report on a partly undone agent stays as it is.
func (a *app) withdraw(ctx context.Context, to kube.Reporter, agent string) error {
	if len(a.skip)+len(a.only) > 0 {
		return nil
	}
	_, err := to.Withdraw(ctx, agent)
	return err
}

func (a *app) writeMetrics(ctx context.Context, report *bootstrap.Report) error {
	if a.reportMetrics == "" {
		return nil
	}
	err := a.host().Do(ctx, hostns.Mount, func(context.Context) error { return textfile.WriteFile(a.reportMetrics, report) })
	if err != nil {
		return fmt.Errorf("--report-metrics: %w", err)
	}
	return nil
}
