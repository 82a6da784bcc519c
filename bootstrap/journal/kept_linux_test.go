// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// keptFile is a node with two of our files, one of them edited, the edited one below a
// directory of ours.
type keptFile struct{ root, state, edited, other string }

func newKeptFile(t *testing.T) keptFile {
	t.Helper()
	root := t.TempDir()
	n := keptFile{root, filepath.Join(t.TempDir(), "state"), filepath.Join(root, "dir", "edited"), filepath.Join(root, "other")}
	j := n.open(t, journal.Node{})
	require.NoError(t, acme.MkdirAll(step(t, j, "files"), j, filepath.Dir(n.edited), 0o755))
	put(t, j, n.edited, "ours")
	put(t, j, n.other, "ours")
	write(t, n.edited, "edited", 0o644)
	return n
}

func (n keptFile) open(t *testing.T, o journal.Node) *journal.Journal {
	t.Helper()
	o.Handlers = []journal.Handler{acme}
	return open(t, n.state, o)
}

func (n keptFile) undo(t *testing.T, o journal.Node) ([]journal.Undone, error) {
	t.Helper()
	return n.open(t, o).RevertAll(t.Context())
}

// Each undo, not only the first, reports a kept object, once: not again for the directory that
// holds it.
func TestPLAN6_WhatIsKeptStaysRecorded(t *testing.T) {
	n := newKeptFile(t)
	for range 3 {
		_, err := n.undo(t, journal.Node{})
		require.EqualError(t, err, n.edited+" is no longer as it was left, so it is kept")
		require.NoFileExists(t, n.other)
	}
	entries, err := n.open(t, journal.Node{}).Entries()
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, map[string]bool{filepath.Dir(n.edited): false, n.edited: true},
		map[string]bool{entries[0].Object: entries[0].Kept, entries[1].Object: entries[1].Kept})

	require.NoError(t, os.Remove(n.edited))
	_, err = n.undo(t, journal.Node{})
	require.NoError(t, err, "it is as it was before")
	require.NoDirExists(t, n.state)
	require.NoDirExists(t, filepath.Dir(n.edited))
}

// A kept file that is changed again has the edited version as its original, which is restored.
func TestPLAN6_WhatIsKeptIsTheOriginalOfTheNextChange(t *testing.T) {
	n := newKeptFile(t)
	_, err := n.undo(t, journal.Node{})
	require.ErrorIs(t, err, journal.ErrChanged)
	j := n.open(t, journal.Node{})
	mine, err := j.Recorded(step(t, j, "files"))
	require.NoError(t, err)
	require.Len(t, mine, 1, "the directory")
	put(t, j, n.edited, "ours again")
	_, err = n.undo(t, journal.Node{})
	require.EqualError(t, err, "directory "+filepath.Dir(n.edited)+" is kept: it holds edited (once that is gone, undoing removes the directory)")
	content, err := os.ReadFile(n.edited)
	require.NoError(t, err)
	require.Equal(t, "edited", string(content))
}

func TestPLAN6_WhatIsKeptIsAccepted(t *testing.T) {
	n := newKeptFile(t)
	would, err := n.open(t, journal.Node{AcceptKept: true}).CheckRevertAll(t.Context())
	require.NoError(t, err)
	done, err := n.undo(t, journal.Node{AcceptKept: true})
	require.NoError(t, err)
	var changes []string
	for i := range done {
		changes = append(changes, done[i].Change)
		require.Equal(t, would[i].Change, done[i].Change)
	}
	require.Contains(t, changes, "leave acme/file "+n.edited+" for good: "+n.edited+" is no longer as it was left, so it is kept")
	require.FileExists(t, n.edited)

	j := n.open(t, journal.Node{})
	left, err := j.LeftForGood()
	require.NoError(t, err)
	require.Len(t, left, 2, "accepted objects are on record")
	require.ElementsMatch(t, []string{n.edited, filepath.Dir(n.edited)}, []string{left[0].Object, left[1].Object})
	empty, err := j.Empty()
	require.NoError(t, err)
	require.True(t, empty)
	for range 2 {
		done, err = n.undo(t, journal.Node{})
		require.NoError(t, err)
		require.Empty(t, done)
	}

	put(t, j, n.edited, "ours again")
	left, err = j.LeftForGood()
	require.NoError(t, err)
	require.Len(t, left, 1, "the file is recorded again")
}
