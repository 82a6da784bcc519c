// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// prepared is a step that wants what its Prepare returns.
func prepared(name string, prepare func(context.Context) (ledger.Wanter, error), after ...string) bootstrap.Step {
	return bootstrap.Step{Name: name, Prepare: prepare, After: after}
}

// unread is a Prepare that fails.
func unread(context.Context) (ledger.Wanter, error) { return nil, errBoom }

func TestPLAN16_AStepIsPreparedForEachRunAfterTheGatesWithoutTheLock(t *testing.T) {
	dir, log := t.TempDir(), []string(nil)
	path := dir + "/first"
	p := on(node(dir+"/state", "pod"))
	p.Gates = []bootstrap.Step{gate("gate", &opening{while: func(context.Context) { log = append(log, "gate") }})}
	p.Prepare = func(context.Context, *bootstrap.Plan) error { log = append(log, "plan"); return nil }
	token := prepared("token", func(ctx context.Context) (ledger.Wanter, error) {
		log = append(log, "token")
		require.Nil(t, ledger.From(ctx), "it is not called inside the host")
		locked(t, p, func() {})
		return file{path}, nil
	})
	token.Wants = file{dir + "/never"}
	absent, left := prepared("absent", unread), prepared("left", unread)
	absent.Absent, left.Skip = true, "asked for"
	p.Steps = []bootstrap.Step{token, absent, left}
	for _, run := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
		log = nil
		report, err := run(p, t.Context())
		require.NoError(t, err)
		require.Subset(t, log, []string{"plan", "token"})
		require.Equal(t, "token", log[len(log)-1])
		require.Equal(t, file{path}, report.Steps[0].Wants, "the report has what it wants")
		require.Nil(t, report.Steps[0].Prepare)
		require.Contains(t, report.Results[len(report.Results)-2].Places, path)
	}
	require.Equal(t, []string{"gate", "plan", "token"}, log)
	require.FileExists(t, path)
	require.NotNil(t, p.Steps[0].Prepare, "the next run has it again")
	path = dir + "/second"
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.FileExists(t, path)

	log = nil
	for _, run := range []runner{(*bootstrap.Plan).CheckRevert, (*bootstrap.Plan).Revert, (*bootstrap.Plan).CheckUninstall, (*bootstrap.Plan).Uninstall} {
		report, err := run(p, t.Context())
		require.NoError(t, err)
		require.Nil(t, report.Steps)
	}
	require.Empty(t, log, "nothing is prepared in order to be undone")
	require.NoFileExists(t, path)
}

// A token is renewed while the network is still missing.
func TestPLAN17_WhatIsNotThereYetStopsOnlyTheStepsThatNeedIt(t *testing.T) {
	yet := fmt.Errorf("the network: %w", ledger.ErrMissing)
	unready := newShelf("unready").want("a=1").(shelfWants)
	wanting := func(w ledger.Wants, err error) bootstrap.Step {
		return wants("bad", wanter(func(context.Context) (ledger.Wants, error) { return w, err }))
	}
	list, err := unready.Wants(t.Context())
	require.NoError(t, err)
	ready := func(err error) bootstrap.Step {
		list := ledger.Wants{List: append([]ledger.Want(nil), list.List...)}
		list.List[0].Ready = func(context.Context) error { return err }
		return wanting(list, nil)
	}
	nothing := prepared("bad", func(context.Context) (ledger.Wanter, error) { return nil, nil })
	for name, tc := range map[string]struct {
		bad   bootstrap.Step
		is    error
		says  string
		stops bool

		places map[string]string
	}{
		"its Prepare fails":          {bad: prepared("bad", unread), is: errBoom, says: "step bad: prepare: boom"},
		"its Prepare returns none":   {bad: nothing, says: "step bad: prepare: it returned nothing that the step wants"},
		"another's file is missing":  {bad: wanting(ledger.Wants{Watch: []string{"/there"}}, yet), is: ledger.ErrMissing, places: map[string]string{"/there": ""}},
		"an object is not ready":     {bad: ready(yet), is: ledger.ErrMissing, places: map[string]string{}},
		"an invalid field":           {bad: wanting(ledger.Wants{}, errBoom), is: errBoom, stops: true},
		"missing, and never to come": {bad: ready(bootstrap.Certain(yet)), is: ledger.ErrMissing, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, last := newShelf("shelf"), todo()
			p := on(node(t.TempDir()+"/state", "pod"), tc.bad, wants("needs", s.want("needs=1"), "bad"), wants("other", s.want("other=1")), step("last", last))
			report, err := p.Check(t.Context())
			require.Error(t, err)
			require.Equal(t, lines("bad failed", "needs blocked", "other would-change", "last would-change"), statuses(report))

			report, err = p.Apply(t.Context())
			require.ErrorContains(t, err, tc.says)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			require.True(t, report.Failed())
			if tc.stops {
				require.Equal(t, lines("bad failed", "needs blocked", "other not-run", "last not-run"), statuses(report))
				require.Empty(t, s.values)
				return
			}
			require.Equal(t, lines("bad failed", "needs blocked", "other changed", "last changed"), statuses(report))
			require.Equal(t, map[string]string{"other": "1"}, s.values)
			require.Equal(t, tc.places, report.Results[0].Places, "so that it is seen when it comes")

			p.Steps[0].Optional = true
			report, err = p.Apply(t.Context())
			require.NoError(t, err)
			require.True(t, report.Results[0].Excused)
		})
	}
}

// An earlier step may bring what another one misses, but not what is read before all steps.
func TestPLAN9_WhatAnEarlierStepMayBringIsUnknown(t *testing.T) {
	missing := wanter(func(context.Context) (ledger.Wants, error) { return ledger.Wants{}, ledger.ErrMissing })
	p := on(node(t.TempDir()+"/state", "pod"), step("first", todo()), wants("missing", missing, "first"), prepared("unread", unread, "first"))
	report, err := p.Check(t.Context())
	require.EqualError(t, err, "step unread: prepare: boom")
	require.Equal(t, lines("first would-change", "missing unknown", "unread failed"), statuses(report))

	p.Gates = []bootstrap.Step{gate("api-server", todo())}
	report, err = p.Check(t.Context())
	require.NoError(t, err, "once the gate is open, it may be read")
	require.Equal(t, lines("api-server would-change", "first would-change", "missing unknown", "unread unknown"), statuses(report))
}

func TestPLAN21_APrepareThatTakesTooLongIsNamed(t *testing.T) {
	hangs := prepared("slow", func(ctx context.Context) (ledger.Wanter, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	hangs.Timeout = time.Millisecond
	p := on(node(t.TempDir()+"/state", "pod"), hangs, wants("next", newShelf("shelf").want("a=1")))
	var checked []string
	p.Trace = &bootstrap.Trace{Checking: func(_ context.Context, step string) { checked = append(checked, step) }}
	report, err := p.Apply(t.Context())
	require.EqualError(t, err, "step slow: prepare: context deadline exceeded (the step's timeout is 1ms)")
	require.Equal(t, lines("slow failed", "next changed"), statuses(report))
	require.Equal(t, "slow", checked[0])

	p.Steps[0].Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	p.Trace.Checking = func(context.Context, string) { cancel() }
	report, err = p.Apply(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, lines("slow not-run", "next not-run"), statuses(report))
}
