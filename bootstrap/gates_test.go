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
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// gate is a waiting action that calls while.
func gate(while func(ctx context.Context)) bootstrap.Action {
	waited := false
	return bootstrap.Func(
		func(context.Context) ([]string, error) {
			if waited {
				return nil, nil
			}
			return []string{"wait"}, nil
		},
		func(ctx context.Context) error {
			waited = true
			while(ctx)
			return nil
		},
	)
}

// While a plan waits for a gate, other processes can lock, claim and change the node.
func TestPLAN16_GatesComeBeforePrepareTheLockAndTheClaim(t *testing.T) {
	dir := t.TempDir()
	state, path := filepath.Join(dir, "state"), filepath.Join(dir, "file")
	here := hostns.Host{LockFile: filepath.Join(dir, "lock"), LockTimeout: -1}
	var log []string
	p := &bootstrap.Plan{
		Host: here, Journal: node(state, "slow"),
		Gates: []bootstrap.Step{step("gate", gate(func(ctx context.Context) {
			log = append(log, "gate")
			require.NoDirExists(t, state, "nothing is made")
			require.Nil(t, journal.OnNode(ctx), "nothing is recorded")
			unlock, err := here.Lock(ctx, "another process", nil)
			require.NoError(t, err, "nothing is locked")
			require.NoError(t, unlock())

			quick := &bootstrap.Plan{Host: here, Journal: node(state, "quick"), Steps: []bootstrap.Step{step("file", file{path})}}
			_, err = quick.Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, "quick", ownerIn(t, state))
		}))},
		Steps: []bootstrap.Step{step("file", nil)},
		Prepare: func(_ context.Context, p *bootstrap.Plan) error {
			log = append(log, "prepare")
			p.Step("file").Action = file{path}
			return nil
		},
	}
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"gate", "prepare"}, log)
	require.Equal(t, lines("gate changed", "file unchanged"), statuses(report))
	require.Equal(t, "slow", ownerIn(t, state), "then it claims the node")

	report, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate unchanged", "file unchanged"), statuses(report), "gates come first in the report")
	report, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, "file changed", statuses(report), "an undo waits for nothing")
}

func TestPLAN16_AGateThatFailsLeavesTheNodeAsItIsButForTheReport(t *testing.T) {
	for name, closed := range map[string]*bootstraptest.Script{"does not open": broken(), "cannot be looked at": unreadable()} {
		a, state := todo(), filepath.Join(t.TempDir(), "state")
		var log []string
		p := &bootstrap.Plan{
			Host:    &host{note: func(what string) { log = append(log, what) }},
			Journal: node(state, "pod"),
			Gates:   []bootstrap.Step{step("first", closed), step("second", todo())},
			Steps:   []bootstrap.Step{step("a", a), step("needs", a, "first")},
			Prepare: func(context.Context, *bootstrap.Plan) error { t.Error(name, "prepares"); return nil },
		}
		report, err := p.Apply(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, lines("first failed", "second not-run", "a not-run", "needs blocked"), statuses(report), name)
		require.Empty(t, a.Calls())
		require.Equal(t, []string{"enter mnt", "lock", "unlock"}, log)
		require.Equal(t, statuses(report), statuses(kept(t, state)))
		require.Empty(t, ownerIn(t, state))
	}
}

func TestPLAN9_AGateThatIsOptionalBlocksItsDependantsOnly(t *testing.T) {
	needs, other := todo(), todo()
	p := &bootstrap.Plan{
		Gates: []bootstrap.Step{optional(step("gate", broken())), step("next", todo()), skipped(step("none", nil))},
		Steps: []bootstrap.Step{step("needs", needs, "gate"), step("other", other, "next")},
	}
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate failed", "next changed", "none skipped", "needs blocked", "other changed"), statuses(report))
	require.Empty(t, needs.Calls(), "not even in its Check")
	require.True(t, other.Applied())
}

// While a gate is closed, a step's Check may fail without being a failure, as it would be with
// the gate open.
func TestPLAN9_CheckWhileAGateIsClosed(t *testing.T) {
	closed := &bootstraptest.Script{Changes: []string{"wait for it"}}
	p := &bootstrap.Plan{
		Gates: []bootstrap.Step{step("gate", closed), step("open", &bootstraptest.Script{})},
		Steps: []bootstrap.Step{
			step("unreadable", &bootstraptest.Script{CheckErrs: []error{errBoom, errBoom, errBoom}}),
			step("done", &bootstraptest.Script{}), step("todo", todo()),
		},
	}
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate would-change", "open unchanged", "unreadable unknown", "done unchanged", "todo would-change"), statuses(report))
	require.ErrorIs(t, report.Results[2].Err, errBoom)
	require.Equal(t, []string{"check"}, closed.Calls(), "it is not waited for")

	p.Gates[0].Action = unreadable()
	report, err = p.Check(t.Context())
	require.EqualError(t, err, "step gate: check: boom")
	require.Equal(t, lines("gate failed", "open unchanged", "unreadable unknown", "done unchanged", "todo would-change"), statuses(report))

	p.Gates[0].Action = &bootstraptest.Script{}
	report, err = p.Check(t.Context())
	require.EqualError(t, err, "step unreadable: check: boom")
	require.Equal(t, bootstrap.Failed, report.Results[2].Status)
}

// A gate that declares changes is a step; one that makes changes without declaring them finds
// no journal.
func TestPLAN16_WhatAGateDoesIsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	p := on(t, node(filepath.Join(dir, "state"), "pod"), step("file", file{dir + "/file"}))
	p.Gates = []bootstrap.Step{step("gate", bootstrap.Retry(file{dir + "/gate"}, nil))}
	require.ErrorContains(t, p.Validate(), `gate "gate" could not be undone: what a gate does is not recorded`)
	p.Gates[0].NoUndo = true
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	_, err = p.RevertAll(t.Context())
	require.NoError(t, err)
	require.FileExists(t, dir+"/gate")
	require.NoFileExists(t, dir+"/file")
}

func TestGatesAreValidated(t *testing.T) {
	for want, p := range map[string]*bootstrap.Plan{
		"gate 1 has no name":                     {Gates: []bootstrap.Step{step("", todo())}},
		`gate "g" has no action`:                 {Gates: []bootstrap.Step{step("g", nil)}, Prepare: func(context.Context, *bootstrap.Plan) error { return nil }},
		`gate "g" can neither be absent`:         {Gates: []bootstrap.Step{{Name: "g", Action: todo(), Absent: true}}},
		"nor after others":                       {Gates: []bootstrap.Step{step("f", todo()), step("g", todo(), "f")}},
		`gate "g" has a negative timeout`:        {Gates: []bootstrap.Step{{Name: "g", Action: todo(), Timeout: -1}}},
		`step "g" is in the plan twice`:          {Gates: []bootstrap.Step{step("g", todo())}, Steps: []bootstrap.Step{step("g", todo())}},
		`step "s" is after "h", which is not in`: {Gates: []bootstrap.Step{step("g", todo())}, Steps: []bootstrap.Step{step("s", todo(), "h")}},
	} {
		require.ErrorContains(t, p.Validate(), want)
	}
}
