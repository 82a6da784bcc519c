// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// progress shows a plan as it runs, one line per step.
func (a *app) progress() *bootstrap.Trace {
	return &bootstrap.Trace{StepDone: func(_ context.Context, _ string, r bootstrap.Result) { a.showResult(r) }}
}

// showResult writes a step's line, and one for each further detail. On a terminal the details
// fit beside the other columns; elsewhere a script may search them.
func (a *app) showResult(r bootstrap.Result) {
	const before, least = 39, 20
	head := fmt.Sprintf("  %-12s %-12s %8s", bootstrap.OneLine(r.Step), r.Status, elapsed(r.Elapsed))
	details := r.Details()
	if a.width >= before+least {
		details = nil
		for _, detail := range r.Details() {
			details = append(details, strings.Split(wrapped(detail, "", a.width-before), "\n")...)
		}
	}
	if len(details) == 0 {
		details = []string{""}
	}
	for _, detail := range details {
		fmt.Fprintln(a.stdout, strings.TrimRight(head+"  "+detail, " "))
		head = strings.Repeat(" ", before-2)
	}
}

// showWhole writes a report as one document, or its last line.
func (a *app) showWhole(report *bootstrap.Report) error {
	if a.output == formatJSON {
		return a.writeJSON(report)
	}
	whose := ""
	if report.Agent != "" && report.Owner == "" {
		whose = ", for no owner"
	}
	if len(report.Results) > 0 && report.Count(bootstrap.Skipped) == len(report.Results) {
		whose += ": nothing is done"
	}
	fmt.Fprintf(a.stdout, "%s (%s)%s\n", report.Summary(), elapsed(time.Since(a.began)), whose)
	return nil
}

func elapsed(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
