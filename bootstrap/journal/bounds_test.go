// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// A record beyond a limit is an error that names the limit and the remedy, before anything is
// written; recorded entries stay, and can be completed and undone.
func TestSEC6_AJournalIsBounded(t *testing.T) {
	const entry = "first undo entries that are no longer wanted"
	for name, tc := range map[string]struct {
		bound func() (restore func())
		try   func(t *testing.T, j *journal.Journal) error
		says  []string
	}{
		"entries": {
			bound: func() func() { return journal.Bound(2, 1<<16, 1<<20, 10, 1<<20) },
			try: func(t *testing.T, j *journal.Journal) error {
				return j.Begin(step(t, j, "s"), journal.Entry{Kind: "k/w", Object: "b"}, journal.Entry{Kind: "k/w", Object: "c"})
			},
			says: []string{"record k/w c: 2 entries are recorded, and a journal has at most 2", entry},
		},
		"bytes of an entry": {
			bound: func() func() { return journal.Bound(10, 500, 1<<20, 10, 1<<20) },
			try: func(t *testing.T, j *journal.Journal) error {
				return j.Begin(step(t, j, "s"), journal.Entry{Kind: "k/w", Object: "b", After: value(strings.Repeat("x", 500))})
			},
			says: []string{"record k/w b: it would have ", "and at most 500 are read", "keep content beside the journal"},
		},
		"bytes of an owner": {
			bound: func() func() { return journal.Bound(10, 500, 1<<20, 10, 1<<20) },
			try: func(t *testing.T, j *journal.Journal) error {
				other, err := (&journal.Node{Dir: j.Dir(), Agent: "agent", Owner: strings.Repeat("x", 500)}).Open(t.Context(), nil)
				require.NoError(t, err)
				defer other.Close()
				_, _, err = other.Enter(t.Context(), "apply")
				return err
			},
			says: []string{"at most 500 are read"},
		},
		"bytes of all": {
			bound: func() func() { return journal.Bound(10, 1<<16, 800, 10, 1<<20) },
			try: func(t *testing.T, j *journal.Journal) error {
				return j.Begin(step(t, j, "s"), journal.Entry{Kind: "k/w", Object: "b", After: value(strings.Repeat("x", 500))})
			},
			says: []string{"record k/w b: the journal has ", "at most 800", entry},
		},
		"kept files": {
			bound: func() func() { return journal.Bound(10, 1<<16, 1<<20, 0, 1<<20) },
			try:   begin(5000),
			says:  []string{"the content of 0 files is kept, and 0 is the limit", entry},
		},
		"bytes of kept content": {
			bound: func() func() { return journal.Bound(10, 1<<16, 1<<20, 10, 4999) },
			try:   begin(5000),
			says:  []string{"it would keep 5000 bytes of content, and 4999 is the limit", "move large files away"},
		},
		"bytes that are written": {
			bound: func() func() { return journal.Bound(10, 1<<16, 1<<20, 10, 4999) },
			try: func(t *testing.T, j *journal.Journal) error {
				_, err := j.Keep(t.Context(), func(w io.Writer) (journal.State, error) {
					_, err := w.Write(make([]byte, 5000))
					return journal.State{}, err
				})
				return err
			},
			says: []string{"larger than 4999 bytes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, v := filepath.Join(t.TempDir(), "state"), newValues()
			j := open(t, dir, journal.Node{Handlers: []journal.Handler{v}})
			first := journal.Entry{Kind: "acme/value", Object: "a", Before: value(""), After: value("1")}
			require.NoError(t, j.Begin(step(t, j, "s"), first))
			v.now["a"] = "1"
			before := names(t, dir)
			restore := tc.bound()
			defer restore()
			err := tc.try(t, j)
			for _, says := range tc.says {
				require.ErrorContains(t, err, says)
			}
			require.Equal(t, before, names(t, dir), "nothing was written")
			require.NoError(t, j.Complete(step(t, j, "s"), first))
			require.Equal(t, seen(t, j), seen(t, open(t, dir, journal.Node{})))
			require.Equal(t, []string{"a"}, objects(t, j))
			_, err = j.RevertAll(t.Context())
			require.NoError(t, err)
			require.NoDirExists(t, dir)
		})
	}
}

// begin begins an entry for a file of this size.
func begin(size int) func(*testing.T, *journal.Journal) error {
	return func(t *testing.T, j *journal.Journal) error {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		return journal.Files{Kind: "acme"}.Begin(step(t, j, "s"), j, path, journal.State{Type: "file"})
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		if f.Name() == "lock" {
			continue
		}
		info, err := f.Info()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(f.Name(), " ", info.Size(), info.ModTime()))
	}
	return all
}

// A file with more entries or bytes than a journal ever writes is refused.
func TestSEC6_AnOversizedJournalIsRefused(t *testing.T) {
	another := func(name string) string { return strings.Replace(anEntry, "/a", "/"+name, 1) }
	for says, content := range map[string][]byte{
		"record 4: more than 2 entries": file(aHeader, anEntry, another("b"), another("c")),
		"record 2: ":                    file(aHeader, another(strings.Repeat("a", 1<<17))),
		"agent.journal: larger than":    nil,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "agent.journal")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if content == nil {
			require.NoError(t, os.Truncate(path, 200<<30))
		}
		restore := journal.Bound(2, 1<<16, 1<<20, 10, 1<<20)
		_, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(t.Context(), nil)
		restore()
		require.ErrorContains(t, err, says)
	}
}

// The time to sort a journal grows almost linearly with its length: this one takes seconds,
// where a quadratic order would take many minutes.
func TestSEC6_ManyEntries(t *testing.T) {
	const n = 10_000
	v := newValues()
	j := open(t, filepath.Join(t.TempDir(), "state"), journal.Node{Handlers: []journal.Handler{v}})
	var all []journal.Entry
	for i := range n {
		object := fmt.Sprint(i)
		v.now[object] = "1"
		all = append(all, journal.Entry{Kind: "acme/value", Object: object, Before: value(""), After: value("1"), Needs: []string{fmt.Sprint(i - 1)}})
	}
	ctx := step(t, j, "one")
	require.NoError(t, j.Begin(ctx, all...))
	require.NoError(t, j.Complete(ctx, all...))
	require.NoError(t, j.Revert(ctx))
	require.Len(t, *v.order, n)
	require.NoDirExists(t, j.Dir())
}
