// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// agents lists the directory's agents, without times.
func agents(t *testing.T, dir string) []journal.Agent {
	t.Helper()
	all, err := (&journal.Node{Dir: dir, Agent: "asks", NoOwner: true}).Agents(t.Context(), nil)
	require.NoError(t, err)
	for i := range all {
		require.WithinDuration(t, time.Now(), all[i].Seen, time.Minute)
		require.Equal(t, all[i].Generation > 0, !all[i].Since.IsZero())
		all[i].Since, all[i].Seen = time.Time{}, time.Time{}
	}
	return all
}

// claim claims the node and keeps it.
func claim(t *testing.T, dir string, n journal.Node) *journal.Journal {
	t.Helper()
	j := open(t, dir, n)
	_, leave, err := j.Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	return j
}

func TestPLAN14_AgentsAreListed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.Empty(t, agents(t, dir))
	require.NoDirExists(t, dir)

	v := newValues()
	j := claim(t, dir, journal.Node{Agent: "second", Owner: "pod-1", Handlers: []journal.Handler{v}})
	claim(t, dir, journal.Node{Agent: "second", Owner: "pod-2"})
	v.set(t, step(t, j, "values"), j, "x", "1")
	nobodys := open(t, dir, journal.Node{Agent: "first"})
	v.set(t, step(t, nobodys, "values"), nobodys, "y", "1")
	want := []journal.Agent{{Name: "second", Owner: "pod-2", Generation: 2, Entries: 1}, {Name: "first", Entries: 1}}
	if all := agents(t, dir); all[0].Name == "first" { // both claimed in the same second
		want[0], want[1] = want[1], want[0]
	}
	require.Equal(t, want, agents(t, dir))

	_, err := open(t, dir, journal.Node{Agent: "second", AnyOwner: true, Handlers: []journal.Handler{v}}).RevertAll(t.Context())
	require.NoError(t, err)
	_, err = nobodys.Release(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "first.journal"), "it remembers objects left for good")
	require.Empty(t, agents(t, dir))
}

// The list works for an agent whose own file is damaged.
func TestPLAN14_ADamagedFileIsListedAsThat(t *testing.T) {
	dir := t.TempDir()
	claim(t, dir, journal.Node{Agent: "damaged", Owner: "pod-1"})
	claim(t, dir, journal.Node{Agent: "whole", Owner: "pod-2"})
	path := filepath.Join(dir, "damaged.journal")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(raw, "damaged\n"...), 0o600))
	for _, asks := range []string{"damaged", "whole", "another"} {
		all, err := (&journal.Node{Dir: dir, Agent: asks, NoOwner: true}).Agents(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, "damaged", all[0].Name)
		require.Equal(t, "pod-1", all[0].Owner)
		require.ErrorIs(t, all[0].Err, journal.ErrUnreadable)
		require.ErrorContains(t, all[0].Err, path)
		require.NoError(t, all[1].Err)
	}
}

func TestPLAN14_AnAgentIsSeenByItsLastReport(t *testing.T) {
	dir := t.TempDir()
	j := claim(t, dir, journal.Node{Agent: "first", Owner: "pod-1"})
	require.NoError(t, j.SaveReport([]byte("{}")))
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "first.last.json"), later, later))
	all, err := (&journal.Node{Dir: dir, Agent: "asks", NoOwner: true}).Agents(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, later.Equal(all[0].Seen), all[0].Seen)
	require.WithinDuration(t, time.Now(), all[0].Since, time.Minute)
}

func TestPLAN14_WhoAsksForTheAgentsSaysWho(t *testing.T) {
	_, err := (&journal.Node{Dir: t.TempDir(), NoOwner: true}).Agents(t.Context(), nil)
	require.ErrorContains(t, err, "the agent has no name")
}
