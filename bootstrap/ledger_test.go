// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// What a step wants is recorded and comes back, without a word of the step about it.
func TestPLAN19_WhatAStepWantsIsRecorded(t *testing.T) {
	s := newShelf("shelf")
	s.values["a"] = "before"
	p := on(node(t.TempDir()+"/state", "pod"), wants("s", s.want("a=1", "b=2")))
	would, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"write shelf a", "write shelf b"}, would.Results[0].Changes)
	require.NoDirExists(t, p.Ledger.Dir, "a check makes nothing")
	for _, want := range []string{"s changed", "s unchanged"} {
		report, err := p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, statuses(report))
	}
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, s.values)
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove shelf b", "write shelf a"}, report.Results[0].Changes)
	require.Equal(t, map[string]string{"a": "before"}, s.values)
	require.NoDirExists(t, p.Ledger.Dir)
}

// Without a ledger, what steps want is changed and read back, and nothing is recorded.
func TestPLAN19_WithoutALedgerNothingIsRecorded(t *testing.T) {
	s := newShelf("shelf")
	p := &bootstrap.Plan{Host: bootstraptest.Host(t), Steps: []bootstrap.Step{wants("s", s.want("a=1"))}}
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, "s changed", statuses(report))
	report, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, "s skipped", statuses(report))
	require.Contains(t, report.Results[0].Reason, "no ledger")
	require.Equal(t, "1", s.values["a"])
	for _, run := range []runner{(*bootstrap.Plan).Uninstall, (*bootstrap.Plan).CheckUninstall} {
		report, err := run(p, t.Context())
		require.ErrorContains(t, err, "the plan has no ledger")
		require.ErrorIs(t, report.Err, err)
	}
}

// What is adopted is told, in JSON too.
func TestPLAN15_TheReportSaysWhatIsAdopted(t *testing.T) {
	present := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(present, nil, 0o644))
	p := on(node(t.TempDir()+"/state", "pod"), wants("s", file{present}))
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Results[0].Advice, 1, "check says what could be adopted")
	p.Ledger.Adopt = true
	report, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{present}, report.Results[0].Adopted)
	require.Contains(t, report.Results[0].Details(), "adopted: "+present)
	text, err := report.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"adopted":["`+present)
	_, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, present)
}

// wanter is a Wanter made of a function.
type wanter func(context.Context) (ledger.Wants, error)

func (f wanter) Wants(ctx context.Context) (ledger.Wants, error) { return f(ctx) }

func TestPLAN12_RevertUndoesWhatIsRecordedForTheStepsOfThePlan(t *testing.T) {
	dir, l := t.TempDir(), node(t.TempDir()+"/state", "pod")
	var steps []bootstrap.Step
	for _, name := range []string{"kept", "skipped", "elsewhere"} {
		steps = append(steps, wants(name, file{filepath.Join(dir, name, "file")}))
	}
	_, err := on(l, steps...).Apply(t.Context())
	require.NoError(t, err)

	steps[1] = bootstrap.Step{Name: "skipped", Skip: "asked for"}
	p := on(l, steps[:2]...)
	would, err := p.CheckRevert(t.Context())
	require.NoError(t, err)
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("skipped changed", "kept changed"), statuses(report))
	for i, r := range report.Results {
		require.Equal(t, would.Results[i].Changes, r.Changes)
		require.Len(t, r.Changes, 2)
	}
	require.FileExists(t, dir+"/elsewhere/file", "no step of this plan")
	require.NoDirExists(t, dir+"/skipped")

	report, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("skipped unchanged", "kept unchanged"), statuses(report))
	require.Equal(t, "there is nothing to undo", report.Results[0].Reason)

	_, err = p.Uninstall(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir+"/elsewhere")
	require.NoDirExists(t, l.Dir)
}

func TestPLAN12_UninstallReportsByStepsTheUnknownOnesLast(t *testing.T) {
	dir := t.TempDir()
	var steps []bootstrap.Step
	for _, name := range []string{"a", "gone-1", "b", "gone-2"} {
		steps = append(steps, wants(name, file{filepath.Join(dir, name)}))
	}
	l := node(dir+"/state", "pod")
	_, err := on(l, steps...).Apply(t.Context())
	require.NoError(t, err)
	p := on(l, step("a", nil), step("b", nil), step("new", nil))
	p.Gates = []bootstrap.Step{gate("gate", unreadable())} // not waited for
	p.Prepare = func(context.Context, *bootstrap.Plan) error {
		t.Error("an uninstall needs no configuration")
		return nil
	}
	var log []string
	p.Trace = &bootstrap.Trace{StepDone: func(_ context.Context, _ string, r bootstrap.Result) { log = append(log, r.Step) }}
	l.Kinds = []*ledger.Kind{ledger.File(), ledger.Dir()}
	var would *bootstrap.Report
	locked(t, p, func() { would, err = p.CheckUninstall(t.Context()) })
	require.NoError(t, err)
	require.Equal(t, "check-revert", would.Op)
	require.Equal(t, lines("new unchanged", "b would-change", "a would-change", "gone-2 would-change", "gone-1 would-change"), statuses(would))

	log = nil
	report, err := p.Uninstall(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{"revert", "pod"}, []any{report.Op, report.Owner})
	require.Equal(t, strings.ReplaceAll(statuses(would), "would-change", "changed"), statuses(report))
	for i, r := range report.Results {
		require.Equal(t, would.Results[i].Changes, r.Changes)
	}
	require.Equal(t, []string{"new", "b", "a", "gone-2", "gone-1"}, log)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the lock")

	report, err = p.Uninstall(t.Context())
	require.NoError(t, err, "nothing is left to undo")
	require.Equal(t, lines("new unchanged", "b unchanged", "a unchanged"), statuses(report))
}

// A record whose kind no step of the program has stays, is named, and stops no other.
func TestPLAN12_ARecordOfAnUnknownKindStaysAndIsNamed(t *testing.T) {
	s, l := newShelf("shelf"), node(t.TempDir()+"/state", "pod")
	other := file{filepath.Join(t.TempDir(), "file")}
	_, err := on(l, wants("shelf", s.want("a=1")), wants("file", other)).Apply(t.Context())
	require.NoError(t, err)
	p := on(l, wants("file", other))
	report, err := p.Uninstall(t.Context())
	require.Equal(t, "ledger.unknown-kind", bootstrap.Code(err))
	require.Equal(t, lines("file changed", "shelf failed"), statuses(report))
	require.ErrorContains(t, report.Results[1].Err, "shelf a")
	ofTheStep := wanter(func(context.Context) (ledger.Wants, error) {
		return ledger.Wants{Kinds: []*ledger.Kind{s.kind()}}, errBoom
	})
	p = on(l, wants("shelf", ofTheStep))
	p.Steps[0].Prepare = unread
	_, err = p.Uninstall(t.Context())
	require.NoError(t, err, "a step names also the kinds of what it does not list now, or cannot")
	require.Empty(t, s.values)
}

// An action is undone by its own Undo at the place of its step, between those that come after
// it and before.
func TestPLAN19_AnActionIsUndoneAtItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		run  runner
		more string
	}{
		"revert": {(*bootstrap.Plan).Revert, ""}, "revert all": {(*bootstrap.Plan).Uninstall, "write gone"},
	} {
		var log []string
		s, a := newShelf("shelf"), todo()
		p := on(node(t.TempDir()+"/state", "pod"), wants("gone", s.want("gone=1")), wants("first", s.want("a=1")), step("a", a),
			wants("second", s.want("b=1")), step("plain", struct{ bootstrap.Action }{a}), wants("third", s.want("c=1")))
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
		p.Steps = p.Steps[1:]
		s.note = func(_ context.Context, what string) {
			if strings.HasPrefix(what, "write") {
				log = append(log, what)
			}
		}
		a.Hook = func(_ context.Context, call string) error {
			if call == "undo" {
				log = append(log, call)
			}
			return nil
		}
		report, err := tc.run(p, t.Context())
		require.NoError(t, err)
		want := lines("third changed", "plain skipped", "second changed", "a changed", "first changed")
		order := []string{"write c", "write b", "undo", "write a"}
		if tc.more != "" {
			want, order = want+"\ngone changed", append(order, tc.more)
		}
		require.Equal(t, want, statuses(report), name)
		require.Equal(t, "its action cannot be undone", report.Results[1].Reason)
		require.Equal(t, order, log, name)

		report, err = p.Revert(t.Context())
		require.NoError(t, err)
		require.Equal(t, bootstrap.Unchanged, byStep(report)["a"], "there was nothing to undo")
	}
}

// What stayed since something of an earlier step needed it is tried again with that step.
func TestPLAN12_WhatAnotherStepNeedsGoesWithIt(t *testing.T) {
	dir, a := t.TempDir(), todo()
	p := on(node(t.TempDir()+"/state", "pod"), wants("below", file{dir + "/d/e/file"}), step("a", a), wants("above", file{dir + "/d/other"}))
	_, err := on(p.Ledger, p.Steps[2]).Apply(t.Context())
	require.NoError(t, err, "above has made the directory d")
	_, err = p.Apply(t.Context())
	require.NoError(t, err)
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("above changed", "a changed", "below changed"), statuses(report))
	require.NoDirExists(t, dir+"/d")
}

func TestRevertGoesBackwardsAndOn(t *testing.T) {
	a, b, c := todo(), todo(), todo()
	b.Errs = map[string][]error{"undo": {errBoom}}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("a", a), optional(step("b", b, "a")), step("c", c, "b"), skipped(step("d", nil)),
	}}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)

	report, err := plan.Revert(t.Context())
	require.EqualError(t, err, "step b: revert: boom", "also of an optional step")
	require.Equal(t, lines("d skipped", "c changed", "b failed", "a changed"), statuses(report))
	require.Contains(t, a.Calls(), "undo")

	report, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("d skipped", "c unchanged", "b changed", "a unchanged"), statuses(report))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report, err = plan.Revert(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 4, report.Count(bootstrap.NotRun))
}

func TestPLAN12_WhatIsNoLongerWantedGoesLastFirst(t *testing.T) {
	dir := t.TempDir()
	p := on(node(t.TempDir()+"/state", "pod"),
		wants("below", file{dir + "/a/file"}), wants("above", file{dir + "/a/b/file"}, "below"), wants("wanted", file{dir + "/wanted"}, "above"))
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	p.Steps[0].Absent, p.Steps[1].Absent = true, true
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("above would-change", "below would-change", "wanted unchanged"), statuses(report))
	for _, want := range []string{"changed", "unchanged"} {
		report, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, lines("above "+want, "below "+want, "wanted unchanged"), statuses(report))
		require.NoDirExists(t, dir+"/a")
		require.FileExists(t, dir+"/wanted")
	}
}

func TestPLAN12_ANextOwnersCheckForeseesWhatItsApplyUndoes(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()+"/state"
	_, err := on(node(state, "older"), wants("off", file{dir + "/off"})).Apply(t.Context())
	require.NoError(t, err)

	p := on(node(state, "newer"), bootstrap.Step{Name: "off", Absent: true})
	p.Ledger.Kinds = []*ledger.Kind{ledger.File()}
	would, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, "older", ownerIn(t, state), "a check claims nothing")
	_, err = p.CheckRevert(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOwner, "as its Revert would")
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, would.Results[0].Changes, report.Results[0].Changes)
	require.NoFileExists(t, dir+"/off")
	require.Equal(t, "newer", ownerIn(t, state), "although it wants nothing")
}

func TestPLAN12_WhatCannotBeUndoneStopsOnlyWhatNeedsIt(t *testing.T) {
	s := newShelf("shelf")
	p := on(node(t.TempDir()+"/state", "pod"), wants("off", s.want("a=1")), step("wanted", todo()), step("after", todo(), "off"))
	_, err := on(p.Ledger, p.Steps[0]).Apply(t.Context())
	require.NoError(t, err)
	s.fail["a"] = errBoom
	p.Steps[0].Absent = true
	report, err := p.Apply(t.Context())
	require.EqualError(t, err, "step off: revert: boom")
	require.Equal(t, lines("off failed", "wanted changed", "after blocked"), statuses(report))
}

// An object changed by another program is kept, recorded, and reported: in each apply as
// advice, and in each uninstall as an error.
func TestPLAN6_InApplyWhatIsKeptIsAdvice(t *testing.T) {
	dir := t.TempDir()
	p := on(node(t.TempDir()+"/state", "pod"), wants("off", file{dir + "/off"}), wants("after", file{dir + "/after"}, "off"))
	_, err := on(p.Ledger, p.Steps[0]).Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/off", []byte("edited"), 0o644))
	p.Steps[0].Absent = true
	const kept = "/off is no longer as it was left, so it is kept"
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("off unchanged", "after would-change"), statuses(report))
	require.Contains(t, report.Results[0].Advice, dir+kept)
	for _, want := range []string{"changed", "unchanged"} {
		report, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, lines("off unchanged", "after "+want), statuses(report))
		require.Contains(t, report.Results[0].Advice, dir+kept)
	}
	for i := range 2 {
		report, err = p.Revert(t.Context())
		require.ErrorIs(t, err, ledger.ErrChanged)
		require.ErrorContains(t, err, "step off: revert: ")
		require.ErrorContains(t, err, dir+kept)
		require.Equal(t, []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged}[i], byStep(report)["after"])
	}
	p.Ledger.AcceptKept = true
	_, err = p.Uninstall(t.Context())
	require.NoError(t, err)
	require.FileExists(t, dir+"/off")
	require.NoDirExists(t, p.Ledger.Dir)
}

// What something else still needs stays recorded, which is advice.
func TestPLAN6_AnObjectThatOthersNeedStaysRecordedWithAdvice(t *testing.T) {
	s := newShelf("shelf")
	p := on(node(t.TempDir()+"/state", "pod"), wants("s", s.want("a=1")))
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	s.needed = "b stands on it"
	for _, run := range []runner{(*bootstrap.Plan).CheckRevert, (*bootstrap.Plan).Revert, (*bootstrap.Plan).Uninstall} {
		report, err := run(p, t.Context())
		require.NoError(t, err)
		require.Equal(t, "s unchanged", statuses(report))
		require.Equal(t, []string{"a is still needed: b stands on it"}, report.Results[0].Advice)
	}
	s.needed = ""
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, "s changed", statuses(report))
}

func TestPLAN11_NothingRunsOnANodeWithAnotherOwner(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()+"/state"
	older, newer := on(node(state, "older"), wants("file", file{dir + "/file"})), on(node(state, "newer"), wants("file", file{dir + "/file"}))
	for _, p := range []*bootstrap.Plan{older, newer} {
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
	}
	for name, run := range map[string]runner{
		"check": (*bootstrap.Plan).Check, "apply": (*bootstrap.Plan).Apply, "revert": (*bootstrap.Plan).Revert, "check-revert": (*bootstrap.Plan).CheckRevert,
		"revert-all": (*bootstrap.Plan).Uninstall, "check-revert-all": (*bootstrap.Plan).CheckUninstall,
	} {
		report, err := run(older, t.Context())
		require.ErrorIs(t, err, ledger.ErrNotOwner, name)
		require.ErrorIs(t, report.Err, ledger.ErrNotOwner, name)
		want := bootstrap.NotRun
		if errors.Is(err, ledger.ErrRevoked) { // it had applied: no failure
			want = bootstrap.Skipped
		}
		require.Equal(t, map[string]bootstrap.Status{"file": want}, byStep(report), name)
		require.FileExists(t, dir+"/file")
	}
	_, err := newer.Revert(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/file")
	_, err = newer.Apply(t.Context())
	require.NoError(t, err, "after its own revert an owner may claim the node again")
}

// What another run applies after a plan has looked, and before that has the lock, is looked at before
// anything is claimed or changed.
func TestPLAN11_PLAN17_WhatCameMeanwhileIsLookedAtBeforeTheClaim(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()+"/state"
	first, hasRun := on(node(state, "first"), wants("file", file{dir + "/file"})), false
	second := on(node(state, "second"), wants("file", wanter(func(ctx context.Context) (ledger.Wants, error) {
		if !hasRun {
			hasRun = true
			_, err := first.Apply(t.Context())
			require.NoError(t, err)
		} else if owner, _, err := ledger.From(ctx).Owner(); owner == "first" {
			return ledger.Wants{}, errors.Join(err, errBoom)
		}
		return file{dir + "/file"}.Wants(ctx)
	})))
	report, err := second.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, "file failed", statuses(report))
	require.NoError(t, report.Err)
	require.Equal(t, "first", ownerIn(t, state))
}

// Undoing all agents tells for which agent each step was.
func TestPLAN14_TheReportOfAllAgentsNamesThem(t *testing.T) {
	s, state := newShelf("shelf"), t.TempDir()+"/state"
	for _, agent := range []string{"one", "two"} {
		_, err := on(&ledger.Ledger{Dir: state, Agent: agent, NoOwner: true}, wants("s", s.want(agent+"=1"))).Apply(t.Context())
		require.NoError(t, err)
	}
	report, err := on(&ledger.Ledger{Dir: state, Agent: "one", NoOwner: true, AllAgents: true, Kinds: []*ledger.Kind{s.kind()}}).Uninstall(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("two/s changed", "one/s changed"), statuses(report))
	require.Empty(t, report.Agent)
	require.Empty(t, s.values)
}

var _ bootstrap.Action = (*bootstraptest.Script)(nil)
