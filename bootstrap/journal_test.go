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
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// file is another package's action, which records its changes.
type file struct{ path string }

var acme = journal.Files{Kind: "acme"}

func (file) Kinds() []string      { return acme.Kinds() }
func (file) Namespaces() []string { return acme.Namespaces() }

func (f file) Check(context.Context) ([]string, error) {
	if _, err := os.Stat(f.path); err == nil {
		return nil, nil
	}
	return []string{"make " + f.path}, nil
}

func (f file) Apply(ctx context.Context) error {
	j := journal.From(ctx)
	if err := acme.MkdirAll(ctx, j, filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return acme.Write(ctx, j, f.path, journal.File{Mode: 0o644})
}

// What an apply cannot record is an error of the check, too: nothing is changed.
func TestPLAN17_ACheckFailsWhereTheJournalCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	p := on(t, node(filepath.Join(dir, "missing", "state"), "pod"), step("a", file{filepath.Join(dir, "a")}))
	for _, run := range []func(context.Context) (*bootstrap.Report, error){p.Check, p.Apply} {
		report, err := run(t.Context())
		require.ErrorContains(t, err, "create "+filepath.Join(dir, "missing"))
		require.True(t, report.Failed())
	}
	require.NoFileExists(t, filepath.Join(dir, "a"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "missing"), 0o755))
	_, err := p.Check(t.Context())
	require.NoError(t, err, "it is made with the first record")
	_, err = p.Apply(t.Context())
	require.NoError(t, err)
}

// node is a journal in dir; owner may be empty.
func node(dir, owner string) *journal.Node {
	return &journal.Node{Dir: dir, Agent: "agent", Owner: owner, NoOwner: owner == "", Handlers: []journal.Handler{acme}}
}

// on is a plan of the steps, with the journal j.
func on(t *testing.T, j bootstrap.Journal, steps ...bootstrap.Step) *bootstrap.Plan {
	t.Helper()
	return &bootstrap.Plan{Host: hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")}, Journal: j, Steps: steps}
}

// ownerIn returns the node's owner according to the journal in dir.
func ownerIn(t *testing.T, dir string) string {
	t.Helper()
	j, err := node(dir, "").Open(t.Context(), nil)
	require.NoError(t, err)
	defer j.Close()
	owner, _, err := j.Owner()
	require.NoError(t, err)
	return owner
}

// kept returns the last run's report, on a node with no other records.
func kept(t *testing.T, dir string) *bootstrap.Report {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(filepath.Join(dir, "agent.last.json"))
	require.NoError(t, err)
	report := &bootstrap.Report{}
	require.NoError(t, report.UnmarshalJSON(text))
	return report
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
	j := node(state, "pod")
	var steps []bootstrap.Step
	for _, name := range []string{"kept", "skipped", "elsewhere"} {
		steps = append(steps, bootstrap.Step{Name: name, Action: file{filepath.Join(dir, name, "file")}})
	}
	_, err := on(t, j, steps...).Apply(t.Context())
	require.NoError(t, err)

	steps[1] = bootstrap.Step{Name: "skipped", Skip: true}
	p := on(t, j, steps[:2]...)
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

	_, err = p.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir+"/elsewhere")
	require.NoDirExists(t, state)
}

func TestPLAN12_WhatIsNoLongerWantedGoesLastFirst(t *testing.T) {
	dir := t.TempDir()
	j := node(filepath.Join(t.TempDir(), "state"), "pod")
	p := on(t, j,
		bootstrap.Step{Name: "below", Action: file{dir + "/a/file"}},
		bootstrap.Step{Name: "above", After: []string{"below"}, Action: file{dir + "/a/b/file"}},
		bootstrap.Step{Name: "wanted", After: []string{"above"}, Action: file{dir + "/wanted"}},
	)
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	p.Steps[0].Absent, p.Steps[1].Absent = true, true
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bootstrap.Status{"below": "unknown", "above": "would-change", "wanted": "unchanged"}, byStep(report))
	for _, want := range []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged} {
		report, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]bootstrap.Status{"below": want, "above": want, "wanted": "unchanged"}, byStep(report))
		require.NoDirExists(t, dir+"/a")
		require.FileExists(t, dir+"/wanted")
	}
}

func TestPLAN12_ANextOwnersCheckForeseesWhatItsApplyUndoes(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	older := node(state, "older")
	_, err := on(t, older, bootstrap.Step{Name: "off", Action: file{dir + "/off"}}).Apply(t.Context())
	require.NoError(t, err)

	p := on(t, node(state, "newer"), bootstrap.Step{Name: "off", Absent: true})
	would, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, "older", ownerIn(t, state), "a check claims nothing")
	_, err = p.CheckRevert(t.Context())
	require.ErrorIs(t, err, journal.ErrNotOwner, "as its Revert would")
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, would.Results[0].Changes, report.Results[0].Changes)
	require.NoFileExists(t, dir+"/off")
}

func TestPLAN12_WhatCannotBeUndoneStopsOnlyWhatNeedsIt(t *testing.T) {
	dir := t.TempDir()
	j := node(filepath.Join(t.TempDir(), "state"), "pod")
	p := on(t, j,
		bootstrap.Step{Name: "off", Action: file{dir + "/off/file"}},
		bootstrap.Step{Name: "wanted", Action: file{dir + "/wanted"}},
		bootstrap.Step{Name: "after", After: []string{"off"}, Action: file{dir + "/after"}},
	)
	_, err := on(t, j, p.Steps[:1]...).Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir+"/off", dir+"/aside"))
	require.NoError(t, os.Symlink("off", dir+"/off"))
	p.Steps[0] = bootstrap.Step{Name: "off", Absent: true}
	report, err := p.Apply(t.Context())
	require.ErrorContains(t, err, dir+"/off")
	require.Equal(t, map[string]bootstrap.Status{"off": "failed", "wanted": "changed", "after": "blocked"}, byStep(report))
}

// A file changed by another program is kept, recorded, and reported: in each apply as advice,
// and in each uninstall as an error.
func TestPLAN6_InApplyWhatIsKeptIsAdvice(t *testing.T) {
	dir := t.TempDir()
	j := node(filepath.Join(t.TempDir(), "state"), "pod")
	p := on(t, j,
		bootstrap.Step{Name: "off", Action: file{dir + "/off/file"}},
		bootstrap.Step{Name: "after", After: []string{"off"}, Action: file{dir + "/after"}},
	)
	_, err := on(t, j, p.Steps[:1]...).Apply(t.Context())
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
	require.NoDirExists(t, j.Dir)
}

func TestPLAN11_NothingRunsOnANodeWithAnotherOwner(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	plan := func(owner string) *bootstrap.Plan {
		return on(t, node(state, owner), bootstrap.Step{Name: "file", Action: file{dir + "/file"}})
	}
	older, newer := plan("older"), plan("newer")
	for _, p := range []*bootstrap.Plan{older, newer} {
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
	}
	for name, run := range map[string]func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error){
		"check": (*bootstrap.Plan).Check, "apply": (*bootstrap.Plan).Apply, "revert": (*bootstrap.Plan).Revert, "check-revert": (*bootstrap.Plan).CheckRevert,
		"revert-all": (*bootstrap.Plan).RevertAll, "check-revert-all": (*bootstrap.Plan).CheckRevertAll,
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
	require.NoError(t, err, "after its own revert an owner may claim the node again")
}
