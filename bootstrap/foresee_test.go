// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/failure"
)

// If a node cannot be brought to the whole state, it is left as it is.
func TestPLAN17_ApplyChangesNothingIfAnyStepFailsItsCheck(t *testing.T) {
	dir := t.TempDir()
	first := adviser{todo(), "not shown", nil}
	var log []string
	p := on(node(dir+"/state", "pod"),
		wants("file", file{dir + "/file"}),
		step("first", first),
		step("done", &bootstraptest.Script{}),
		step("bad", unreadable()),
		step("needs", todo(), "bad"),
		step("pending", unreadable(), "first"),
		skipped(step("out", nil)),
		optional(step("spare", unreadable())),
		step("worse", unreadable()),
		step("last", todo()),
	)
	p.Trace = &bootstrap.Trace{
		StepStart: func(ctx context.Context, op, step string) context.Context {
			log = append(log, "start "+step+" for "+op)
			return ctx
		},
		StepDone: func(_ context.Context, op string, r bootstrap.Result) {
			log = append(log, op+" "+r.Step+" "+string(r.Status))
		},
	}
	report, err := p.Apply(t.Context())
	require.EqualError(t, err, "step bad: check: boom\nstep worse: check: boom", "all of them, not the first only")
	require.Equal(t, lines("file not-run", "first not-run", "done unchanged", "bad failed", "needs blocked", "pending not-run",
		"out skipped", "spare failed", "worse failed", "last not-run"), statuses(report))
	require.True(t, report.Failed())
	require.Equal(t, "apply", report.Op)
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
		"apply file not-run", "apply first not-run", "start done for apply", "apply done unchanged", "start bad for apply", "apply bad failed", "apply needs blocked",
		"apply pending not-run", "apply out skipped", "start spare for apply", "apply spare failed", "start worse for apply", "apply worse failed", "apply last not-run",
	}, log, "each step is reported once")
}

// An error of Wants is certain, also after a step that would change something: what that
// changes does not mend a field. An error of the look at the node may be.
func TestPLAN9_PLAN17_AnErrorOfWantsFailsBeforeTheFirstChange(t *testing.T) {
	s := newShelf("shelf")
	s.fail["unreadable"] = errBoom
	for name, tc := range map[string]struct {
		want   ledger.Wanter
		status bootstrap.Status
	}{
		"of wants": {s.want("no value"), bootstrap.Failed}, "of the look": {s.want("unreadable=1"), bootstrap.Unknown},
	} {
		first := todo()
		p := on(node(t.TempDir()+"/state", "pod"), step("first", first), wants("s", tc.want, "first"), wants("next", newShelf("shelf").want("a=1"), "s"))
		report, err := p.Check(t.Context())
		require.Equal(t, tc.status, byStep(report)["s"], name)
		require.Equal(t, tc.status == bootstrap.Failed, err != nil, name)
		_, err = p.Apply(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, tc.status == bootstrap.Unknown, slices.Contains(first.Calls(), "apply"), name)
	}
}

// Who may not change an object is told so before anything is changed.
func TestPLAN17_PLAN22_WhatMayNotBeDoneIsKnownBeforeTheFirstChange(t *testing.T) {
	first, s := newShelf("first"), newShelf("second")
	s.denied = fs.ErrPermission
	p := on(node(t.TempDir()+"/state", "pod"), wants("first", first.want("a=1")), wants("second", s.want("a=1"), "first"))
	report, err := p.Check(t.Context())
	if os.Geteuid() == 0 {
		require.ErrorIs(t, err, fs.ErrPermission)
	} else {
		require.NoError(t, err, "a user may look who may change nothing")
		require.Equal(t, 2, report.Count(bootstrap.WouldChange))
	}
	report, err = p.Apply(t.Context())
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, "plan.permission", codeOf(report))
	require.Empty(t, first.values)
	s.values["a"] = "1"
	_, err = p.Apply(t.Context())
	require.NoError(t, err, "without changes no permission is needed")
}

// A ledger that cannot be written ends the plan.
func TestPLAN6_ALedgerThatCannotBeWrittenEndsThePlan(t *testing.T) {
	dir, next := t.TempDir(), todo()
	s := newShelf("shelf")
	p := on(node(dir+"/state", "pod"), wants("s", s.want("a=1")), step("next", next))
	writes := 0
	s.note = func(_ context.Context, what string) {
		if what == "write a" {
			writes++
			require.NoError(t, os.RemoveAll(dir+"/state"))
			require.NoError(t, os.WriteFile(dir+"/state", nil, 0o600))
		}
	}
	report, err := p.Apply(t.Context())
	require.ErrorIs(t, err, failure.ErrUnrecorded)
	require.Equal(t, lines("s failed", "next not-run"), statuses(report))
	require.NotContains(t, next.Calls(), "apply")
	require.Equal(t, 1, writes)
}

// Without changes nothing is locked and nothing is written; a new owner claims the node
// nevertheless, and what was found as wanted is recorded.
func TestPLAN2_WithNothingToDoNothingIsLocked(t *testing.T) {
	dir := t.TempDir()
	state := dir + "/state"
	steps := []bootstrap.Step{wants("file", file{dir + "/file"})}
	run := func(l *ledger.Ledger, locks bool) *bootstrap.Report {
		t.Helper()
		p := on(l, steps...)
		var report *bootstrap.Report
		locked(t, p, func() {
			var err error
			report, err = p.Apply(t.Context())
			require.Equal(t, locks, errors.Is(err, hostns.ErrLocked), "%v", err)
		})
		if locks {
			var err error
			report, err = p.Apply(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, l.Owner, report.Owner)
		return report
	}
	a, b := node(state, "a"), node(state, "b")
	require.Equal(t, "file changed", statuses(run(a, true)))
	report := run(a, false)
	require.Equal(t, "file unchanged", statuses(report))
	require.Equal(t, 1, report.Generation)
	require.Equal(t, "file unchanged", statuses(run(node(state, ""), false)), "without an owner, nothing is claimed")

	report = run(b, true)
	require.Equal(t, "file unchanged", statuses(report), "it is locked to claim it")
	require.Equal(t, 2, report.Generation)
	require.Equal(t, "b", ownerIn(t, state))
	run(b, false)
	run(node(state, "b"), false) // another process of the owner's

	steps = append(steps, wants("again", file{dir + "/file"}))
	require.Equal(t, lines("file unchanged", "again unchanged"), statuses(run(b, true)), "to record the second claim")
	run(b, false)
}
