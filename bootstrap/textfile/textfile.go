// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package textfile writes the outcome of a plan's run for the textfile collector of
// Prometheus' node_exporter: metrics of a program that has ended by the time anybody
// asks, such as an init container.
//
//	report, err := plan.Apply(ctx)
//	err = errors.Join(err, textfile.WriteFile("/var/lib/node_exporter/slipway-cilium.prom", report))
//
// The metrics, all with the labels agent and op (apply, check, revert):
//
//	slipway_run_failed{step,code}           1 if the run failed, by the step and the code of its cause, else 0
//	slipway_run_pending_steps               steps that would change something, after a check
//	slipway_run_changed_steps               steps that changed something
//	slipway_run_start_timestamp_seconds     when it started
//	slipway_run_duration_seconds            how long it took
//
// A file has the last run only, so each agent of a node needs its own. Codes are those
// of CODES.md. It needs a directory to write to, in the calling thread's mount
// namespace, and nothing else. Do not use it in a program that goes on running: that
// has bootstrap/prom.
package textfile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/durable"
)

// WriteFile writes the metrics of the report to the file at path, mode 0644, in place of
// the present one: a reader finds the old one or the new one. The collector reads
// files that end in .prom, so another name is an error.
func WriteFile(path string, r *bootstrap.Report) error {
	if filepath.Ext(path) != ".prom" {
		return fmt.Errorf("write metrics to %s: the collector reads files that end in .prom", path)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = durable.WriteFile(path, 0o644, text(r))
	}
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// text is in the format of the collector:
// https://prometheus.io/docs/instrumenting/exposition_formats/.
func text(r *bootstrap.Report) []byte {
	var b bytes.Buffer
	of := labels("agent", r.Agent, "op", r.Op)
	gauge := func(name, help, labels string, value float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s{%s} %g\n", name, help, name, name, labels, value)
	}
	failed, why := 0.0, of
	if step, err := r.Cause(); err != nil {
		failed, why = 1, of+","+labels("step", step, "code", bootstrap.Code(err))
	}
	gauge("slipway_run_failed", "Whether the last run failed, by the step and the code of the cause.", why, failed)
	gauge("slipway_run_pending_steps", "Steps in which a check found something to do.", of, float64(r.Count(bootstrap.WouldChange, bootstrap.Unknown)))
	gauge("slipway_run_changed_steps", "Steps that changed something.", of, float64(r.Count(bootstrap.Changed)))
	if !r.Start.IsZero() {
		gauge("slipway_run_start_timestamp_seconds", "When the last run started.", of, float64(r.Start.UnixMilli())/1000)
	}
	gauge("slipway_run_duration_seconds", "How long the last run took, with all waiting.", of, r.Elapsed.Seconds())
	return b.Bytes()
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labels(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf(`%s="%s"`, pairs[i], escape.Replace(pairs[i+1])))
	}
	return strings.Join(all, ",")
}
