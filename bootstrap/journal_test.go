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

// file is an action of somebody else's, which records what it does.
type file struct {
	path    string
	journal *journal.Journal
}

var acme = journal.Files{Kind: "acme"}

func (f file) Check(context.Context) ([]string, error) {
	if _, err := os.Stat(f.path); err == nil {
		return nil, nil
	}
	return []string{"make " + f.path}, nil
}

func (f file) Apply(ctx context.Context) error {
	if err := acme.MkdirAll(ctx, f.journal, filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	if err := acme.Begin(ctx, f.journal, f.path, journal.State{Type: "file"}); err != nil {
		return err
	}
	if err := os.WriteFile(f.path, nil, 0o644); err != nil {
		return err
	}
	return acme.Complete(ctx, f.journal, f.path)
}

// reverting is one with a Revert of its own, beside the journal's.
type reverting struct {
	file
	reverted *int
}

func (r reverting) Revert(context.Context) error { *r.reverted++; return nil }

func (r reverting) CheckRevert(context.Context) ([]string, error) {
	if *r.reverted > 0 {
		return nil, nil
	}
	return []string{"remove file " + r.path, "and something else"}, nil
}

func openJournal(t *testing.T, dir, owner string) *journal.Journal {
	t.Helper()
	j, err := (&journal.Node{Dir: dir, Agent: "test", Owner: owner, Handlers: []journal.Handler{acme}}).Open(context.Background(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func byStep(r *bootstrap.Report) map[string]bootstrap.Status {
	m := map[string]bootstrap.Status{}
	for _, result := range r.Results {
		m[result.Step] = result.Status
	}
	return m
}

func TestPLAN12_RevertUndoesWhatTheJournalHoldsForTheStepsOfThePlan(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	j := openJournal(t, state, "pod")
	var steps []bootstrap.Step
	for _, name := range []string{"kept", "skipped", "elsewhere"} {
		steps = append(steps, bootstrap.Step{Name: name, Action: file{filepath.Join(dir, name, "file"), j}})
	}
	_, err := (&bootstrap.Plan{Journal: j, Steps: steps}).Apply(t.Context())
	require.NoError(t, err)

	steps[1] = bootstrap.Step{Name: "skipped", Skip: true}
	p := &bootstrap.Plan{Journal: j, Steps: steps[:2]}
	would, err := p.CheckRevert(t.Context())
	require.NoError(t, err)
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	for i, r := range report.Results {
		require.Equal(t, bootstrap.Changed, r.Status)
		require.Equal(t, would.Results[i].Changes, r.Changes)
		require.Len(t, r.Changes, 2)
	}
	require.FileExists(t, dir+"/elsewhere/file", "no step of this plan")
	require.NoDirExists(t, dir+"/skipped")

	report, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bootstrap.Status{"kept": bootstrap.Unchanged, "skipped": bootstrap.Unchanged}, byStep(report))

	_, err = j.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir+"/elsewhere")
	require.NoDirExists(t, state)
}

func TestPLAN12_WhatIsNoLongerWantedGoes(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "pod")
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
		{Name: "wanted", Action: file{dir + "/wanted", j}},
		{Name: "off", Action: file{dir + "/off", j}},
		{Name: "after", After: []string{"off"}, Action: file{dir + "/after", j}},
	}}
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.FileExists(t, dir+"/off")

	p.Steps[1] = bootstrap.Step{Name: "off", Absent: true}
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bootstrap.Status{"wanted": "unchanged", "off": "would-change", "after": "unchanged"}, byStep(report))
	for _, want := range []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged} {
		report, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]bootstrap.Status{"wanted": "unchanged", "off": want, "after": "unchanged"}, byStep(report))
		require.NoFileExists(t, dir+"/off")
		require.FileExists(t, dir+"/wanted")
	}
}

func TestPLAN12_WhatIsNoLongerWantedGoesLastFirst(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "pod")
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
		{Name: "below", Action: file{dir + "/a/file", j}},
		{Name: "above", After: []string{"below"}, Action: file{dir + "/a/b/file", j}},
	}}
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	p.Steps[0].Absent, p.Steps[1].Absent = true, true
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bootstrap.Status{"below": "unknown", "above": "would-change"}, byStep(report))
	_, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir+"/a")
}

func TestPLAN12_ANextOwnersCheckForeseesWhatItsApplyUndoes(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	older := openJournal(t, state, "older")
	_, err := (&bootstrap.Plan{Journal: older, Steps: []bootstrap.Step{{Name: "off", Action: file{dir + "/off", older}}}}).Apply(t.Context())
	require.NoError(t, err)

	p := &bootstrap.Plan{Journal: openJournal(t, state, "newer"), Steps: []bootstrap.Step{{Name: "off", Absent: true}}}
	would, err := p.Check(t.Context())
	require.NoError(t, err)
	owner, _, err := older.Owner()
	require.NoError(t, err)
	require.Equal(t, "older", owner, "a check claims nothing")
	_, err = p.CheckRevert(t.Context())
	require.ErrorIs(t, err, journal.ErrNotOwner, "as its Revert would")
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, would.Results[0].Changes, report.Results[0].Changes)
	require.NoFileExists(t, dir+"/off")
}

func TestPLAN12_WhatCannotBeUndoneStopsOnlyWhatNeedsIt(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "pod")
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
		{Name: "off", Action: file{dir + "/off/file", j}},
		{Name: "wanted", Action: file{dir + "/wanted", j}},
		{Name: "after", After: []string{"off"}, Action: file{dir + "/after", j}},
	}}
	_, err := (&bootstrap.Plan{Journal: j, Steps: p.Steps[:1]}).Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir+"/off", dir+"/aside"))
	require.NoError(t, os.Symlink("off", dir+"/off"))
	p.Steps[0] = bootstrap.Step{Name: "off", Absent: true}
	report, err := p.Apply(t.Context())
	require.ErrorContains(t, err, dir+"/off")
	require.Equal(t, map[string]bootstrap.Status{"off": "failed", "wanted": "changed", "after": "blocked"}, byStep(report))
}

// What somebody has changed is kept, recorded, and said: at each apply as advice, and
// by an uninstall as an error, also the second one.
func TestPLAN6_InApplyWhatIsKeptIsAdvice(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "pod")
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
		{Name: "off", Action: file{dir + "/off/file", j}},
		{Name: "after", After: []string{"off"}, Action: file{dir + "/after", j}},
	}}
	_, err := (&bootstrap.Plan{Journal: j, Steps: p.Steps[:1]}).Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/off/file", []byte("edited"), 0o644))
	p.Steps[0] = bootstrap.Step{Name: "off", Absent: true}
	kept := dir + "/off/file is no longer as it was left, so it is kept"
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bootstrap.Status{"off": "unchanged", "after": "would-change"}, byStep(report))
	require.Equal(t, []string{kept}, report.Results[0].Advice)
	for _, want := range []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged} {
		report, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]bootstrap.Status{"off": "unchanged", "after": want}, byStep(report))
		require.Equal(t, []string{kept}, report.Results[0].Advice)
	}
	for range 2 {
		_, err = p.Revert(t.Context())
		require.EqualError(t, err, "step off: revert: "+kept)
	}
	require.NoError(t, os.Remove(dir+"/off/file"))
	_, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, j.Dir())
}

func TestEverythingIsNotUndoneFromWithinAnApply(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "pod")
	all := func(ctx context.Context) error { _, err := j.RevertAll(ctx); return err }
	check := func(context.Context) ([]string, error) { return []string{"undo everything"}, nil }
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
		{Name: "file", Action: file{dir + "/file", j}},
		{Name: "all", Action: bootstrap.Func(check, all)},
	}}
	_, err := p.Apply(t.Context())
	require.ErrorContains(t, err, "in use by this very apply")
	require.FileExists(t, dir+"/file")
}

func TestPLAN11_NothingRunsOnANodeThatIsSomebodyElses(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	plan := func(owner string) *bootstrap.Plan {
		j := openJournal(t, state, owner)
		return &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{{Name: "file", Action: file{dir + "/file", j}}}}
	}
	older, newer := plan("older"), plan("newer")
	for _, p := range []*bootstrap.Plan{older, newer} {
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
	}
	for name, run := range map[string]func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error){
		"check": (*bootstrap.Plan).Check, "apply": (*bootstrap.Plan).Apply, "revert": (*bootstrap.Plan).Revert, "check-revert": (*bootstrap.Plan).CheckRevert,
	} {
		report, err := run(older, t.Context())
		require.ErrorIs(t, err, journal.ErrNotOwner, name)
		require.Equal(t, map[string]bootstrap.Status{"file": bootstrap.NotRun}, byStep(report), name)
		require.FileExists(t, dir+"/file")
	}
	_, err := newer.Revert(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/file")
	require.NoDirExists(t, state)
	_, err = newer.Apply(t.Context())
	require.NoError(t, err, "after one's own revert the node may be claimed again")
}

func TestAnActionsOwnRevertComesAfterTheJournals(t *testing.T) {
	dir, reverted := t.TempDir(), 0
	j := openJournal(t, filepath.Join(t.TempDir(), "state"), "")
	p := &bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{{Name: "s", Action: reverting{file{dir + "/file", j}, &reverted}}}}
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	report, err := p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + dir + "/file", "and something else"}, report.Results[0].Changes)
	require.Equal(t, 1, reverted)
}
