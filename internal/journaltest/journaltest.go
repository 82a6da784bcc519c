// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package journaltest has journals for tests, and changes that only a crash, a reboot or
// an attacker makes.
package journaltest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Open opens the journal in dir for a step called "test", until the test ends.
func Open(t testing.TB, dir string, handlers ...journal.Handler) *journal.Journal {
	t.Helper()
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true, Handlers: handlers}).Open(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j.Step("test")
}

// Temp opens a journal in a directory of the test's own, which does not exist yet.
func Temp(t testing.TB, handlers ...journal.Handler) *journal.Journal {
	t.Helper()
	return Open(t, filepath.Join(t.TempDir(), "slipway"), handlers...)
}

// Entries lists the recorded entries.
func Entries(t testing.TB, j *journal.Journal) []journal.Entry {
	t.Helper()
	entries, err := j.Entries()
	require.NoError(t, err)
	return entries
}

// Path returns the file of the journal in dir, which has one agent.
func Path(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	require.NoError(t, err)
	require.Len(t, all, 1, "journals in %s", dir)
	return all[0]
}

// Records lists the JSON texts in the journal in dir, in the order of the file.
func Records(t testing.TB, dir string) []json.RawMessage {
	t.Helper()
	content, err := os.ReadFile(Path(t, dir))
	require.NoError(t, err)
	return Texts(content)
}

// Texts lists the JSON texts in the file of a journal.
func Texts(file []byte) (all []json.RawMessage) {
	for line := range strings.Lines(string(file)) {
		all = append(all, json.RawMessage(strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)[2]))
	}
	return all
}

// Format returns the content of a journal file with these JSON texts, with their lengths
// and sums.
func Format(records ...json.RawMessage) []byte {
	var file []byte
	sum := ""
	for _, text := range records {
		hash := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", sum, len(text), text))
		sum = hex.EncodeToString(hash[:])[:16]
		file = fmt.Appendf(file, "%d %s %s\n", len(text), sum, text)
	}
	return file
}

// Write gives the file of a journal these JSON texts, which only an attacker, or another
// version, does.
func Write(t testing.TB, path string, records ...json.RawMessage) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", Format(records...), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// Edit changes each entry of the journal in dir in place.
func Edit(t testing.TB, dir string, edit func(*journal.Entry)) {
	t.Helper()
	EditEach(t, dir, func(e journal.Entry) (journal.Entry, bool) {
		edit(&e)
		return e, true
	})
}

// EditEach changes each entry of the journal in dir in place, or drops it, also earlier
// versions of it that are still in the file. A change of several entries becomes several
// changes.
func EditEach(t testing.TB, dir string, edit func(journal.Entry) (changed journal.Entry, stays bool)) {
	t.Helper()
	edited := 0
	var all []json.RawMessage
	for _, text := range Records(t, dir) {
		var e struct{ Record string }
		require.NoError(t, json.Unmarshal(text, &e))
		stays := true
		if e.Record == "entry" {
			text, stays = editEntry(t, text, edit)
			edited++
		}
		if stays {
			all = append(all, text)
		}
	}
	require.Positive(t, edited)
	Write(t, Path(t, dir), all...)
}

func editEntry(t testing.TB, text json.RawMessage, edit func(journal.Entry) (journal.Entry, bool)) (json.RawMessage, bool) {
	t.Helper()
	var e journal.Entry
	var fields, edited map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &e))
	require.NoError(t, json.Unmarshal(text, &fields))
	e, stays := edit(e)
	body, err := json.Marshal(e)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &edited))
	edited["record"] = fields["record"]
	if anew, ok := fields["anew"]; ok {
		edited["anew"] = anew
	}
	text, err = json.Marshal(edited)
	require.NoError(t, err)
	return text, stays
}

// Reboot gives entries that belong to this boot another one: all of them, or those of the
// given kinds, if the other objects stay on the node though their files may be in memory.
func Reboot(t testing.TB, dir string, kinds ...string) {
	t.Helper()
	changed := false
	Edit(t, dir, func(e *journal.Entry) {
		if e.Boot != "" && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			e.Boot, changed = "another", true
		}
	})
	require.True(t, changed, "some recorded entry belongs to the boot")
}

// Begun makes the journal as it was before the changes were made.
func Begun(t testing.TB, dir string) {
	t.Helper()
	Edit(t, dir, func(e *journal.Entry) { e.Done = false })
}
