// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// everything is a report with a step of each status, and texts that need escaping.
func everything() *bootstrap.Report {
	failed := func(step, op string, err error) error {
		return &bootstrap.StepError{Step: step, Op: op, Err: err}
	}
	return &bootstrap.Report{Results: []bootstrap.Result{
		{Step: "config", Status: bootstrap.Unchanged, Elapsed: 1234567 * time.Nanosecond},
		{Step: "cleanup", Status: bootstrap.Skipped, Reason: "asked for"},
		{Step: "cgroup", Status: bootstrap.Changed, Changes: []string{"make directory /run/ä", "mount cgroup2 on /run/ä"}, Elapsed: 42 * time.Microsecond},
		{Step: "sysctl", Status: bootstrap.WouldChange, Changes: []string{"set net.ipv4.ip_forward = 1 (is 0) <now>"}, Elapsed: 2 * time.Millisecond},
		{Step: "links", Status: bootstrap.Unknown, Err: failed("links", "check", errors.New("no such device \x1b[2J")), Elapsed: time.Millisecond},
		{Step: "bpffs", Status: bootstrap.Failed, Changes: []string{"mount bpf on /sys/fs/bpf"}, Elapsed: 90 * time.Second,
			Err: failed("bpffs", "apply", errors.Join(errors.New("first"), errors.New("second")))},
		{Step: "cni", Status: bootstrap.Blocked, Err: errors.New("it comes after step bpffs, which failed")},
		{Step: "readiness", Status: bootstrap.NotRun},
	}}
}

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestPLAN21_AReportIsPrintedAsATable(t *testing.T) {
	golden(t, "report.txt", []byte(fmt.Sprintln(everything())))
	require.Equal(t, "no steps", (&bootstrap.Report{}).String())
	var b strings.Builder
	trace := bootstrap.TextTrace(&b, 60, func(s bootstrap.Status, text string) string { return "<" + text + ">" })
	for _, result := range everything().Results[1:6] {
		trace.StepDone(t.Context(), "check", result)
	}
	trace.PlanDone(t.Context(), &bootstrap.Report{Op: "apply", Results: everything().Results[1:6], Agent: "acme", Elapsed: 2 * time.Second})
	golden(t, "trace.txt", []byte(b.String()))
	require.Contains(t, fmt.Sprint(&bootstrap.Report{Results: everything().Results[:1]}), "\n1 step: unchanged")
}

func TestPLAN4_ReportJSON(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(everything()))
	golden(t, "report.json", b.Bytes())

	compact, err := json.Marshal(everything())
	require.NoError(t, err)
	require.JSONEq(t, b.String(), string(compact))

	byValue, err := json.Marshal(*everything())
	require.NoError(t, err)
	require.Equal(t, string(compact), string(byValue))
}

func TestAReportIsReadBackFromJSON(t *testing.T) {
	want := everything()
	want.Op, want.Start, want.Elapsed = "apply", time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), 91*time.Second
	want.Node, want.Version, want.Command, want.Agent, want.Owner, want.Generation = "node-1", "v1.2.3", "mount-cgroup", "cilium", "a pod's UID", 3
	want.Err = errors.New("take the node's lock: held")
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var got bootstrap.Report
	require.NoError(t, json.Unmarshal(text, &got))
	again, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.EqualError(t, got.Err, want.Err.Error())
	require.Contains(t, string(text), `"node":"node-1","version":"v1.2.3","command":"mount-cgroup","agent":"cilium","generation":3,"start":"2026-01-02T03:04:05.000006Z","owner":"a pod's UID",`)
	require.Equal(t, want.Node+want.Version+want.Command+want.Agent+want.Owner, got.Node+got.Version+got.Command+got.Agent+got.Owner)
	require.Equal(t, want.Generation, got.Generation)
	for i, r := range want.Results {
		require.Equal(t, r.Elapsed.Truncate(time.Microsecond), got.Results[i].Elapsed)
		require.Equal(t, r.Reason, got.Results[i].Reason)
		if r.Err == nil {
			require.NoError(t, got.Results[i].Err)
		} else {
			require.EqualError(t, got.Results[i].Err, r.Err.Error())
		}
	}
	require.Error(t, json.Unmarshal([]byte(`{"results":[{"elapsedMs":"long"}]}`), &got))
	require.Error(t, json.Unmarshal([]byte(`{"start":"yesterday"}`), &got))
}

// The report alone shows whether the run failed, for hooks that get no error.
func TestTheReportAloneShowsWhetherTheRunFailed(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		plan bootstrap.Plan
		ctx  context.Context
	}{
		"done":                 {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo())}}},
		"skipped":              {plan: bootstrap.Plan{Steps: []bootstrap.Step{skipped(step("a", nil))}}},
		"failed":               {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", broken()), step("b", todo())}}},
		"optional":             {plan: bootstrap.Plan{Steps: []bootstrap.Step{optional(step("a", broken())), step("b", todo(), "a"), step("c", todo())}}},
		"optional, unreadable": {plan: bootstrap.Plan{Steps: []bootstrap.Step{optional(step("a", unreadable()))}}},
		"unknown":              {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo()), step("b", unreadable(), "a")}}},
		"absent":               {plan: bootstrap.Plan{Steps: []bootstrap.Step{{Name: "a", Action: broken(), Absent: true}}}},
		"over":                 {bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo())}}, ended},
		"invalid":              {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("", todo())}}},
		"unprepared": {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo())}, Prepare: func(context.Context, *bootstrap.Plan) error {
			return errBoom
		}}},
		"not locked": {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", hosted{Script: todo()})}, Host: hostns.Host{Here: true, LockFile: "/nowhere/lock"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			for op, run := range map[string]func(context.Context) (*bootstrap.Report, error){
				"check": tc.plan.Check, "apply": tc.plan.Apply, "check of revert": tc.plan.CheckRevert, "revert": tc.plan.Revert,
			} {
				report, err := run(tc.ctx)
				require.Equal(t, err != nil, report.Failed(), "%s: %v", op, err)
				text, err := json.Marshal(report)
				require.NoError(t, err)
				var read bootstrap.Report
				require.NoError(t, json.Unmarshal(text, &read))
				require.Equal(t, report.Failed(), read.Failed(), "%s, read back: %s", op, text)
			}
		})
	}
}
