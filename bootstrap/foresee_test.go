// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// If a node cannot be brought to the whole state, it is left as it is.
func TestPLAN17_ApplyChangesNothingIfAnyStepFailsItsCheck(t *testing.T) {
	dir := t.TempDir()
	first := &bootstraptest.Script{Changes: []string{"do it"}, Advice: []string{"not shown"}}
	var log []string
	p := &bootstrap.Plan{
		Host:    &host{note: func(what string) { log = append(log, what) }},
		Journal: node(filepath.Join(dir, "state"), "pod"),
		Steps: []bootstrap.Step{
			step("file", file{dir + "/file"}),
			step("first", first),
			step("done", &bootstraptest.Script{}),
			step("bad", unreadable()),
			step("needs", todo(), "bad"),
			step("pending", unreadable(), "first"),
			skipped(step("out", nil)),
			optional(step("spare", unreadable())),
			step("worse", unreadable()),
			step("last", todo()),
		},
		Trace: &bootstrap.Trace{
			StepStart: func(ctx context.Context, op bootstrap.Op, step string) context.Context {
				log = append(log, "start "+step+" for "+string(op))
				return ctx
			},
			StepDone: func(_ context.Context, op bootstrap.Op, r bootstrap.Result) {
				log = append(log, string(op)+" "+r.Step+" "+string(r.Status))
			},
		},
	}
	report, err := p.Apply(t.Context())
	require.EqualError(t, err, "step bad: check: boom\nstep worse: check: boom", "all of them, not the first only")
	require.Equal(t, lines("file not-run", "first not-run", "done unchanged", "bad failed", "needs blocked", "pending not-run",
		"out skipped", "spare failed", "worse failed", "last not-run"), statuses(report))
	require.True(t, report.Failed())
	require.Equal(t, bootstrap.OpApply, report.Op)
	require.Equal(t, []string{"agent", "pod"}, []string{report.Agent, report.Owner})
	require.Equal(t, []string{"check"}, first.Calls())
	for _, r := range report.Results {
		require.Empty(t, r.Changes, r.Step)
		require.Empty(t, r.Advice, r.Step)
	}
	require.NoFileExists(t, dir+"/file")
	require.Equal(t, statuses(report), statuses(kept(t, dir+"/state")))
	require.Empty(t, ownerIn(t, dir+"/state"), "nothing is claimed")
	require.Equal(t, []string{
		"enter mnt", "enter mnt", // the journal, and the file
		"apply file not-run", "apply first not-run", "start done for apply", "apply done unchanged", "start bad for apply", "apply bad failed", "apply needs blocked",
		"apply pending not-run", "apply out skipped", "start spare for apply", "apply spare failed", "start worse for apply", "apply worse failed", "apply last not-run",
		"lock", "unlock", // to write the report
	}, log, "each step is reported once")
}

// An unchanged step gives its advice in each apply, even if other steps have changes.
func TestAnUnchangedStepAdvisesAlsoWhereAnotherChanges(t *testing.T) {
	done := &bootstraptest.Script{Advice: []string{"a later file overrides it"}}
	p := &bootstrap.Plan{Steps: []bootstrap.Step{step("first", todo()), step("done", done)}}
	for _, first := range []string{"changed", "unchanged"} {
		report, err := p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, lines("first "+first, "done unchanged"), statuses(report))
		require.Equal(t, []string{"a later file overrides it"}, report.Results[1].Advice, first)
	}
}

// Others may have changed the node between the check and the lock.
func TestPLAN17_WhatFailsLaterStopsAsItAlwaysHas(t *testing.T) {
	late := &bootstraptest.Script{Changes: []string{"do it"}, CheckErrs: []error{nil, errBoom}}
	p := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo()), step("late", late), step("c", todo())}}
	report, err := p.Apply(t.Context())
	require.EqualError(t, err, "step late: check: boom")
	require.Equal(t, lines("a changed", "late failed", "c not-run"), statuses(report))
}

func TestPLAN17_AnUnreadableJournalStopsAlsoWhatKeepsGoing(t *testing.T) {
	a := todo()
	p := &bootstrap.Plan{KeepGoing: true, Host: &host{}, Journal: others{}, Steps: []bootstrap.Step{step("a", a)}}
	_, err := p.Apply(t.Context())
	require.EqualError(t, err, "the node has another owner")
	require.Empty(t, a.Calls())
}

// Without changes nothing is locked and nothing is written; a new owner claims the node
// nevertheless.
func TestPLAN2_WithNothingToDoNothingIsLocked(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	var log []string
	run := func(owner string, j *journal.Node) *bootstrap.Report {
		log = nil
		p := &bootstrap.Plan{Host: &host{note: func(what string) { log = append(log, what) }}, Journal: j, Steps: []bootstrap.Step{step("file", file{dir + "/file"})}}
		report, err := p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, owner, report.Owner)
		return report
	}
	a, b := node(state, "a"), node(state, "b")
	require.Equal(t, "file changed", statuses(run("a", a)))
	require.Contains(t, log, "lock")

	report := run("a", a)
	require.Equal(t, "file unchanged", statuses(report))
	require.NotContains(t, log, "lock")
	require.Equal(t, 1, report.Generation)
	require.Equal(t, "file unchanged", statuses(run("", node(state, ""))), "without an owner, nothing is claimed")
	require.NotContains(t, log, "lock")

	report = run("b", b)
	require.Equal(t, "file unchanged", statuses(report))
	require.Contains(t, log, "lock", "to claim it")
	require.Equal(t, 2, report.Generation)
	require.Equal(t, "b", ownerIn(t, state))
	run("b", b)
	require.NotContains(t, log, "lock")
	run("b", node(state, "b"))
	require.NotContains(t, log, "lock", "another process of the owner's")
}

// A process that found nothing to change has applied too: after a later uninstall it does not
// install again.
func TestPLAN11_WhoHasFoundNothingToDoIsRevokedToo(t *testing.T) {
	dir := t.TempDir()
	file := step("file", file{dir + "/file"})
	_, err := on(t, node(dir+"/state", "pod"), file).Apply(t.Context())
	require.NoError(t, err)
	restarted := on(t, node(dir+"/state", "pod"), file)
	report, err := restarted.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, "file unchanged", statuses(report))
	require.Equal(t, 1, report.Generation)

	uninstall := node(dir+"/state", "")
	uninstall.AnyOwner = true
	_, err = on(t, uninstall).RevertAll(t.Context())
	require.NoError(t, err)
	for range 2 {
		_, err = restarted.Apply(t.Context())
		require.ErrorIs(t, err, journal.ErrRevoked)
		require.NoFileExists(t, dir+"/file")
	}
}
