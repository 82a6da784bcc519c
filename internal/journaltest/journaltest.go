// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package journaltest has journals for tests, and changes that nobody makes but
// a crash, a reboot or an attacker.
package journaltest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Open opens the journal in dir for a step called "test", until the test ends.
func Open(t testing.TB, dir string, handlers ...journal.Handler) *journal.Journal {
	t.Helper()
	j, err := (&journal.Node{Dir: dir, Agent: "test", NoOwner: true, Handlers: handlers}).Open(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j.Step("test")
}

// Temp opens a journal in a directory of the test's own, which is not there yet.
func Temp(t testing.TB, handlers ...journal.Handler) *journal.Journal {
	t.Helper()
	return Open(t, filepath.Join(t.TempDir(), "slipway"), handlers...)
}

// Entries lists what is recorded.
func Entries(t testing.TB, j *journal.Journal) []journal.Entry {
	t.Helper()
	entries, err := j.Entries()
	require.NoError(t, err)
	return entries
}

// Edit changes each entry of the journal in dir where it lies.
func Edit(t testing.TB, dir string, edit func(*journal.Entry)) {
	t.Helper()
	path := filepath.Join(dir, "journal.json")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	page := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(raw, &page))
	var entries []journal.Entry
	require.NoError(t, json.Unmarshal(page["entries"], &entries))
	require.NotEmpty(t, entries)
	for i := range entries {
		edit(&entries[i])
	}
	page["entries"], err = json.Marshal(entries)
	require.NoError(t, err)
	raw, err = json.Marshal(page)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".new", raw, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// Reboot makes what this boot has recorded for itself be of another: all of it, or
// entries of the given kinds, where the rest stays on the node though its files may
// be in memory.
func Reboot(t testing.TB, dir string, kinds ...string) {
	t.Helper()
	changed := false
	Edit(t, dir, func(e *journal.Entry) {
		if e.Boot != "" && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			e.Boot, changed = "another", true
		}
	})
	require.True(t, changed, "something recorded goes with the boot")
}

// Begun makes the journal what it was before the changes were made.
func Begun(t testing.TB, dir string) {
	t.Helper()
	Edit(t, dir, func(e *journal.Entry) { e.Done = false })
}
