// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

var update = flag.Bool("update", false, "write what is read of the journals in testdata anew")

// testdata holds state directories written by earlier versions, which are never changed:
// v0.1/nodeinit comes from two runs of the command, with two owners and a value that the second
// has changed; v0.1/two-agents has records of every kind. The file beside each directory gives
// the expected content of each journal.
func TestPLAN6_JournalsOfEarlierVersionsAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/v*/*/*.journal")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/"), func(t *testing.T) {
			j := openCopy(t, filepath.Dir(file), strings.TrimSuffix(filepath.Base(file), ".journal"))
			golden, read := filepath.Dir(file)+"-"+filepath.Base(file)+".txt", everything(t, j)
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(read), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), read)
		})
	}
}

// openCopy opens the agent's journal in a copy of a state directory, for the journal's owner.
func openCopy(t *testing.T, dir, agent string, handlers ...journal.Handler) *journal.Journal {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.CopyFS(state, os.DirFS(dir)))
	return open(t, state, journal.Node{Agent: agent, Owner: "pod-b", Boot: "boot-1", Handlers: handlers})
}

// everything describes all that a reader sees in a journal.
func everything(t *testing.T, j *journal.Journal) string {
	t.Helper()
	var b strings.Builder
	owner, generation, err := j.Owner()
	require.NoError(t, err)
	fmt.Fprintf(&b, "owner %q generation %d\n", owner, generation)
	found, err := j.Found()
	require.NoError(t, err)
	for _, e := range append(entries(t, j), found...) {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n", text)
	}
	left, err := j.LeftForGood()
	require.NoError(t, err)
	for _, l := range left {
		fmt.Fprintf(&b, "left %s %s %s %s\n", l.Kind, l.Object, l.Value, l.Time.UTC())
	}
	return b.String()
}

// An earlier version's records are undone: values are restored, those that the user has changed
// stay, and kept content is still readable.
func TestPLAN6_JournalsOfEarlierVersionsAreUndone(t *testing.T) {
	v := newValues()
	for object, now := range map[string]string{"plain": "2", "shared": "2", "kept": "9", "left": "9", "volatile": "1", "later": "1", "found": "1"} {
		v.now[object] = now
	}
	j := openCopy(t, "testdata/v0.1/two-agents", "agent", v)
	e, known, err := j.Lookup(step(t, j, "values"), "acme/file", "/etc/acme/large")
	require.NoError(t, err)
	require.True(t, known)
	content, err := j.Content(e.Before)
	require.NoError(t, err)
	require.NoError(t, content.Close())
	_, err = j.RevertAll(t.Context())
	require.ErrorIs(t, err, journal.ErrChanged)
	require.Equal(t, map[string]string{"plain": "0", "shared": "0", "kept": "9", "left": "9", "volatile": "0", "later": "0", "found": "1"}, v.now)
}
