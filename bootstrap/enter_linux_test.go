// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// marked starts a node that a thread can tell from this side.
func marked(t *testing.T) *bootstraptest.Node {
	t.Helper()
	n := bootstraptest.NewNode(t)
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		if err := unix.Sethostname([]byte("marked")); err != nil {
			return err
		}
		return os.WriteFile("/run/marked", nil, 0o600)
	}))
	return n
}

// where tells in which of a marked node's namespaces the calling thread is.
func where() string {
	var in []string
	if _, err := os.Stat("/run/marked"); err == nil {
		in = append(in, "mnt")
	}
	if name, err := os.Hostname(); err == nil && name == "marked" {
		in = append(in, "uts")
	}
	return strings.Join(in, "+")
}

// advising also advises, and notes where.
type advising struct {
	ledger.Wanter
	note func()
}

func (a advising) Advise(context.Context) ([]string, error) { a.note(); return nil, nil }

// A plan calls what a step wants in the host's namespaces, an action in those that it names,
// and what is local in none. The ledger and the lock are on the host.
func TestSEC10_APlanCallsAStepWhereItsObjectsAre(t *testing.T) {
	n := marked(t)
	called := map[string]map[string]bool{}
	note := func(step string) {
		if called[step] == nil {
			called[step] = map[string]bool{}
		}
		called[step][where()] = true
	}
	shelfOf := func(name string) ledger.Wanter {
		s := newShelf(name)
		s.note = func(context.Context, string) { note(name) }
		return advising{s.want("a=1"), func() { note(name) }}
	}
	scriptOf := func(name string) *bootstraptest.Script {
		a := todo()
		a.Hook = func(context.Context, string) error { note(name); return nil }
		return a
	}
	local := wants("local", shelfOf("local"))
	local.Local = true
	plan := bootstrap.Plan{Host: hostns.Host{Proc: n.Proc()}, Ledger: node("/run/state", "pod"), Steps: []bootstrap.Step{
		wants("wants", shelfOf("wants")), local, wants("file", file{"/run/agent/file"}),
		step("hosted", hosted{Script: scriptOf("hosted")}), step("plain", scriptOf("plain")),
	}}
	for _, run := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply, (*bootstrap.Plan).CheckRevert} {
		_, err := run(&plan, t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		for _, path := range []string{"/run/agent/file", "/run/state", "/run/slipway.lock"} {
			if _, err := os.Stat(path); err != nil {
				return err
			}
		}
		return nil
	}))
	report, err := plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, report.Count(bootstrap.Changed), statuses(report))
	require.Equal(t, map[string]map[string]bool{
		"wants": {"mnt+uts": true}, "local": {"": true}, "hosted": {"mnt": true}, "plain": {"": true},
	}, called)
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		_, err := os.Stat("/run/state")
		require.ErrorIs(t, err, os.ErrNotExist)
		return nil
	}))
}

// An object of this side, where the process is in a container, is recorded as the container's:
// the host's steps of the same name do not touch it, and it is undone here.
func TestPLAN6_AnObjectOfTheContainerIsRecordedAsTheContainers(t *testing.T) {
	n, s := marked(t), newShelf("shelf")
	dir := t.TempDir()
	plan := func(host hostns.Host) *bootstrap.Plan {
		p := on(node(filepath.Join(dir, "state"), "pod"), wants("local", s.want("a=1")))
		host.LockFile = p.Host.LockFile
		p.Host, p.Steps[0].Local = host, true
		return p
	}
	inside, outside := hostns.Host{Proc: n.Proc()}, hostns.Host{Here: true}
	for name, undo := range map[string]func() (*bootstrap.Report, error){
		"there":                     func() (*bootstrap.Report, error) { return plan(inside).Revert(t.Context()) },
		"with all, from the host":   func() (*bootstrap.Report, error) { return plan(outside).Uninstall(t.Context()) },
		"with all, from within":     func() (*bootstrap.Report, error) { return plan(inside).Uninstall(t.Context()) },
		"not by the host's own one": func() (*bootstrap.Report, error) { return plan(outside).Revert(t.Context()) },
	} {
		_, err := plan(inside).Apply(t.Context())
		require.NoError(t, err)
		report, err := undo()
		require.NoError(t, err)
		if strings.HasPrefix(name, "not") {
			require.Equal(t, "local unchanged", statuses(report), name)
			report, err = plan(inside).Revert(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, "local changed", statuses(report), name)
		require.Empty(t, s.values)
		require.NoDirExists(t, filepath.Join(dir, "state"))
	}
}

func TestSEC10_AHostThatCannotBeEnteredIsAnError(t *testing.T) {
	s := newShelf("shelf")
	p := &bootstrap.Plan{Host: hostns.Host{Proc: "/nowhere"}, Steps: []bootstrap.Step{wants("a", s.want("a=1"))}}
	for _, run := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
		_, err := run(p, t.Context())
		require.ErrorContains(t, err, "step a: check: enter")
	}
	p.Ledger = node(t.TempDir()+"/state", "pod")
	report, err := p.Check(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, report.Err, os.ErrNotExist, "the ledger is on the host too, so the error is the plan's")
}

// An object that would stay in the container is refused before anything else happens, unless
// the step is local.
func TestSEC10_APlanRefusesWhatWouldStayInTheContainer(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir, first, s := testns.TempDir(t), todo(), newShelf("shelf")
	require.NoError(t, unix.Mount("private", dir, "tmpfs", 0, ""))
	s.at = filepath.Join(dir, "a")
	p := &bootstrap.Plan{Host: hostns.Host{LockFile: t.TempDir() + "/lock"}, Steps: []bootstrap.Step{step("first", first), wants("a", s.want("a=1"), "first")}}
	for _, run := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
		report, err := run(p, t.Context())
		require.ErrorIs(t, err, hostns.ErrNotHost)
		require.Equal(t, bootstrap.Failed, report.Results[1].Status)
	}
	require.Empty(t, s.values)
	require.NotContains(t, first.Calls(), "apply")
	p.Steps[1].Local = true
	_, err := p.Apply(t.Context())
	require.NoError(t, err)

	second := hosted{todo(), map[string]string{s.at: ""}}
	first = todo()
	p.Steps = []bootstrap.Step{step("first", first), step("a", second, "first")}
	_, err = p.Apply(t.Context())
	require.ErrorIs(t, err, hostns.ErrNotHost, "an action that says where it acts")
	require.NotContains(t, first.Calls(), "apply")
	require.Empty(t, second.Calls())
}
