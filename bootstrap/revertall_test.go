// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// applied makes files in dir, each by its own step.
func applied(t *testing.T, dir string, names ...string) {
	t.Helper()
	var steps []bootstrap.Step
	for _, name := range names {
		steps = append(steps, step(name, file{filepath.Join(dir, name)}))
	}
	_, err := on(t, node(dir+"/state", "pod"), steps...).Apply(t.Context())
	require.NoError(t, err)
}

func TestPLAN12_RevertAllReportsByStepsTheUnknownOnesLast(t *testing.T) {
	dir := t.TempDir()
	applied(t, dir, "a", "gone-1", "b", "gone-2")
	j := node(dir+"/state", "pod")
	var log []string
	p := &bootstrap.Plan{
		Host:    &host{note: func(what string) { log = append(log, what) }},
		Journal: j,
		Gates:   []bootstrap.Step{step("gate", unreadable())}, // not waited for
		Steps:   []bootstrap.Step{step("a", nil), step("b", nil), step("new", nil)},
		Prepare: func(context.Context, *bootstrap.Plan) error {
			t.Error("an uninstall needs no configuration")
			return nil
		},
		Trace: &bootstrap.Trace{StepDone: func(_ context.Context, op bootstrap.Op, r bootstrap.Result) { log = append(log, string(op)+" "+r.Step) }},
	}
	would, err := p.CheckRevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.OpCheckRevert, would.Op)
	require.Equal(t, lines("new unchanged", "b would-change", "a would-change", "gone-2 would-change", "gone-1 would-change"), statuses(would))
	require.NotContains(t, log, "lock")
	require.FileExists(t, dir+"/gone-1")

	log = nil
	report, err := p.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.OpRevert, report.Op)
	require.Equal(t, "pod", report.Owner)
	require.Equal(t, lines("new unchanged", "b changed", "a changed", "gone-2 changed", "gone-1 changed"), statuses(report))
	for i, r := range report.Results {
		require.Equal(t, would.Results[i].Changes, r.Changes)
		require.Zero(t, r.Elapsed, "the time of all is no step's own")
	}
	require.Equal(t, []string{"remove file " + dir + "/b"}, report.Results[1].Changes)
	require.Equal(t, []string{"lock", "enter mnt"}, log[:2], "the lock comes first, and then the journal")
	require.Equal(t, []string{"revert new", "revert b", "revert a", "revert gone-2", "revert gone-1", "unlock"}, log[len(log)-6:])
	for _, name := range []string{"a", "b", "gone-1", "gone-2", "state"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		require.ErrorIs(t, err, os.ErrNotExist)
	}

	report, err = p.RevertAll(t.Context())
	require.NoError(t, err, "nothing is left to undo")
	require.Equal(t, lines("new unchanged", "b unchanged", "a unchanged"), statuses(report))
}

func TestPLAN12_RevertAllNeedsNoSteps(t *testing.T) {
	dir := t.TempDir()
	applied(t, dir, "a")
	p := on(t, node(dir+"/state", "pod"))
	report, err := p.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a changed", statuses(report))
	require.NoFileExists(t, dir+"/a")

	for _, run := range []func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error){(*bootstrap.Plan).RevertAll, (*bootstrap.Plan).CheckRevertAll} {
		a := todo()
		p := &bootstrap.Plan{Host: &host{note: func(what string) { t.Error(what) }}, Steps: []bootstrap.Step{step("a", a)}}
		report, err := run(p, t.Context())
		require.ErrorContains(t, err, "the plan has no journal")
		require.ErrorIs(t, report.Err, err)
		require.Equal(t, "a not-run", statuses(report))
		require.Empty(t, a.Calls())
	}
}

// Each failure is its step's error, in the report and in the returned error.
func TestPLAN12_WhatRevertAllLeavesIsAnErrorOfItsStep(t *testing.T) {
	dir := t.TempDir()
	applied(t, dir, "a", "b", "c")
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("edited"), 0o644))
	}
	p := on(t, node(dir+"/state", "pod"), step("a", nil))
	p.Prepare = func(context.Context, *bootstrap.Plan) error { return nil }
	kept := func(name, op string) string {
		return "step " + name + ": " + op + ": " + filepath.Join(dir, name) + " is no longer as it was left, so it is kept"
	}
	would, err := p.CheckRevertAll(t.Context())
	require.EqualError(t, err, kept("a", "check-revert")+"\n"+kept("b", "check-revert"))
	require.Equal(t, lines("a failed", "c would-change", "b failed"), statuses(would))
	for i := range 2 {
		report, err := p.RevertAll(t.Context())
		require.EqualError(t, err, kept("a", "revert")+"\n"+kept("b", "revert"))
		require.ErrorIs(t, err, journal.ErrChanged)
		var failure *bootstrap.StepError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "a", failure.Step)
		require.True(t, report.Failed())
		require.NoError(t, report.Err, "the plan itself is well")
		require.Equal(t, []string{lines("a failed", "c changed", "b failed"), lines("a failed", "b failed")}[i], statuses(report))
	}
	accepting := node(dir+"/state", "pod")
	accepting.AcceptKept = true
	report, err := on(t, accepting).RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("b changed", "a changed"), statuses(report))
	require.FileExists(t, dir+"/a")
}
