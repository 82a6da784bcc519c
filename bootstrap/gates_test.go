// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// opening is a gate that is closed until it was waited for, which calls while.
type opening struct {
	while  func(ctx context.Context)
	isOpen bool
}

func (o *opening) Check(context.Context) ([]string, error) {
	if o.isOpen {
		return nil, nil
	}
	return []string{"wait"}, nil
}

func (o *opening) Wait(ctx context.Context) error {
	o.isOpen = true
	o.while(ctx)
	return nil
}

// While a plan waits for a gate, other processes can lock, claim and change the node.
func TestPLAN16_GatesComeBeforePrepareTheLockAndTheClaim(t *testing.T) {
	dir := t.TempDir()
	state, path := filepath.Join(dir, "state"), filepath.Join(dir, "file")
	var log []string
	p := on(node(state, "slow"), wants("file", nil))
	p.Gates = []bootstrap.Step{gate("gate", &opening{while: func(ctx context.Context) {
		log = append(log, "gate")
		require.NoDirExists(t, state, "nothing is made")
		require.Nil(t, ledger.From(ctx), "nothing is recorded")
		locked(t, p, func() {}) // nothing is locked
		_, err := on(node(state, "quick"), wants("file", file{path})).Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, "quick", ownerIn(t, state))
	}})}
	p.Prepare = func(_ context.Context, p *bootstrap.Plan) error {
		log = append(log, "prepare")
		p.Step("file").Wants = file{path}
		return nil
	}
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"gate", "prepare"}, log)
	require.Equal(t, lines("gate changed", "file unchanged"), statuses(report))
	require.Equal(t, "slow", ownerIn(t, state), "then it claims the node")

	report, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate unchanged", "file unchanged"), statuses(report), "gates come first in the report")
	p.Ledger.Kinds = []*ledger.Kind{ledger.File()}
	report, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, "file changed", statuses(report), "an undo waits for nothing")
}

func TestPLAN16_AGateThatFailsLeavesTheNodeAsItIsButForTheReport(t *testing.T) {
	for name, closed := range map[string]*bootstraptest.Script{"does not open": broken(), "cannot be looked at": unreadable()} {
		a, state := todo(), filepath.Join(t.TempDir(), "state")
		p := on(node(state, "pod"), step("a", a), step("needs", a, "first"))
		p.Gates = []bootstrap.Step{gate("first", closed), gate("second", todo())}
		p.Prepare = func(context.Context, *bootstrap.Plan) error { t.Error(name, "prepares"); return nil }
		report, err := p.Apply(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, lines("first failed", "second not-run", "a not-run", "needs blocked"), statuses(report), name)
		require.Empty(t, a.Calls())
		require.Equal(t, statuses(report), statuses(kept(t, state)))
		require.Empty(t, ownerIn(t, state))
	}
}

func TestPLAN9_AGateThatIsOptionalBlocksItsDependantsOnly(t *testing.T) {
	needs, other := todo(), todo()
	p := &bootstrap.Plan{
		Gates: []bootstrap.Step{optional(gate("gate", broken())), gate("next", todo()), skipped(gate("none", nil))},
		Steps: []bootstrap.Step{step("needs", needs, "gate"), step("other", other, "next")},
	}
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate failed", "next changed", "none skipped", "needs blocked", "other changed"), statuses(report))
	require.Empty(t, needs.Calls(), "not even in its Check")
	require.Contains(t, other.Calls(), "apply")
}

// While a gate is closed, a step's Check may fail without being a failure, as it would be with
// the gate open.
func TestPLAN9_CheckWhileAGateIsClosed(t *testing.T) {
	closed := &bootstraptest.Script{Changes: []string{"wait for it"}}
	p := &bootstrap.Plan{
		Gates: []bootstrap.Step{gate("gate", closed), gate("open", &bootstraptest.Script{})},
		Steps: []bootstrap.Step{
			step("unreadable", &bootstraptest.Script{Errs: map[string][]error{"check": {errBoom, errBoom, errBoom}}}),
			step("done", &bootstraptest.Script{}), step("todo", todo()),
		},
	}
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate would-change", "open unchanged", "unreadable unknown", "done unchanged", "todo would-change"), statuses(report))
	require.ErrorIs(t, report.Results[2].Err, errBoom)
	require.Equal(t, []string{"check"}, closed.Calls(), "it is not waited for")

	p.Gates[0].Gate = unreadable()
	report, err = p.Check(t.Context())
	require.EqualError(t, err, "step gate: check: boom")
	require.Equal(t, lines("gate failed", "open unchanged", "unreadable unknown", "done unchanged", "todo would-change"), statuses(report))

	p.Gates[0].Gate = &bootstraptest.Script{}
	report, err = p.Check(t.Context())
	require.EqualError(t, err, "step unreadable: check: boom")
	require.Equal(t, bootstrap.Failed, report.Results[2].Status)
}

type undoesOnly struct{ bootstrap.Action }

func (undoesOnly) Undo(context.Context) error { return nil }

func TestPLAN19_WhatAPlanConsistsOfIsValidated(t *testing.T) {
	var none *bootstraptest.Script
	both := struct {
		ledger.Wanter
		bootstrap.Action
	}{newShelf("shelf").want("a=1"), todo()}
	for want, p := range map[string]*bootstrap.Plan{
		`step "a" has a nil *bootstraptest.Script`:      {Steps: []bootstrap.Step{step("a", none)}},
		`gate "a gate" has a nil *bootstraptest.Script`: {Gates: []bootstrap.Step{gate("a gate", none)}},
		"nothing would be recorded: set Wants":          {Steps: []bootstrap.Step{step("s", both)}},
		"whose Undo would never be called":              {Steps: []bootstrap.Step{step("s", undoesOnly{todo()})}},
		"gate 1 has no name":                            {Gates: []bootstrap.Step{gate("", todo())}},
		`gate "g" has no Gate`:                          {Gates: []bootstrap.Step{gate("g", nil)}, Prepare: func(context.Context, *bootstrap.Plan) error { return nil }},
		`gate "g" can neither be absent`:                {Gates: []bootstrap.Step{{Name: "g", Gate: todo(), Absent: true}}},
		"nor after others":                              {Gates: []bootstrap.Step{gate("f", todo()), {Name: "g", Gate: todo(), After: []string{"f"}}}},
		`gate "g" has a negative timeout`:               {Gates: []bootstrap.Step{{Name: "g", Gate: todo(), Timeout: -1}}},
		`step "g" is in the plan twice`:                 {Gates: []bootstrap.Step{gate("g", todo())}, Steps: []bootstrap.Step{step("g", todo())}},
		"step 1 has no name":                            {Steps: []bootstrap.Step{step("", todo())}},
		`step "a" has neither Wants nor an Action`:      {Steps: []bootstrap.Step{step("a", nil)}},
		`step "a" has both`:                             {Steps: []bootstrap.Step{{Name: "a", Action: todo(), Wants: newShelf("shelf").want()}}},
		`step "a" is a gate: make it one of Gates`:      {Steps: []bootstrap.Step{gate("a", todo())}},
		`step "a" is after "b", which does not come`:    {Steps: []bootstrap.Step{step("a", todo(), "b"), step("b", todo())}},
		`step "a" is after "a", which does not come`:    {Steps: []bootstrap.Step{step("a", todo(), "a")}},
		`step "a" has a negative timeout: -1s`:          {Steps: []bootstrap.Step{{Name: "a", Action: todo(), Timeout: -time.Second}}},
		`step "s" is after "h", which is not in`:        {Gates: []bootstrap.Step{gate("g", todo())}, Steps: []bootstrap.Step{step("s", todo(), "h")}},
		`gate "g" has Wants or an Action`:               {Gates: []bootstrap.Step{step("g", todo())}},
		`gate "h" has Wants or an Action`:               {Gates: []bootstrap.Step{prepared("h", unread)}},
		`step "s" has both Wants and an Action, or a`:   {Steps: []bootstrap.Step{{Name: "s", Prepare: unread, Action: todo()}}},
	} {
		p.Steps = append(p.Steps, step("", nil)) // all faults are listed
		_, err := p.Check(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, " has no name")
	}
}
