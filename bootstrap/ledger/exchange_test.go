// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// What is replaced or removed is what was read: a user who owns the directory above may put
// another one in its place in between, which holds an object of the same name.
func TestSEC1_WhatIsWrittenOverIsWhatWasRead(t *testing.T) {
	const name = "x"
	file, dir := ledger.File(), ledger.Dir()
	fileOf := func(path string) ledger.Want { return ledger.FileWant(path, 0o600, []byte("ours")) }
	dirOf := func(path string) ledger.Want {
		want := fileOf(path)
		return ledger.Want{Kind: dir, Object: path, To: ledger.State{Type: "dir", Mode: 0o750, UID: want.To.UID, GID: want.To.GID}}
	}
	none := func(string) error { return nil }
	theirFile := func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o640) }
	beside := func(theirs func(string) error) func(string) error { // under another name
		return func(path string) error { return theirs(path + "-other") }
	}
	theirDir := func(path string) error { return os.Mkdir(path, 0o700) }
	for what, c := range map[string]struct {
		before func(path string) error // makes the object
		want   func(path string) ledger.Want
		theirs func(path string) error // makes the one that takes its place
		undo   bool                    // the exchange comes with the undoing
	}{
		"a file that is replaced":           {theirFile, fileOf, theirFile, false},
		"a file that is made":               {none, fileOf, theirFile, false},
		"a file that is made beside theirs": {none, fileOf, beside(theirFile), false},
		"a file that is removed":            {none, fileOf, theirFile, true},
		"a file that comes back":            {theirFile, fileOf, theirFile, true},
		"a directory that is made":          {none, dirOf, theirDir, false},
		"a directory whose mode is changed": {theirDir, dirOf, theirDir, false},
		"a directory beside theirs":         {none, dirOf, beside(theirDir), false},
		"a directory that is removed":       {none, dirOf, theirDir, true},
	} {
		t.Run(what, func(t *testing.T) {
			top := t.TempDir()
			place, other := filepath.Join(top, "place"), filepath.Join(top, "other")
			require.NoError(t, os.Mkdir(place, 0o700))
			require.NoError(t, os.Mkdir(other, 0o700))
			require.NoError(t, c.before(filepath.Join(place, name)))
			require.NoError(t, c.theirs(filepath.Join(other, name)))
			armed, want := !c.undo, c.want(filepath.Join(place, name))
			kind := map[string]*ledger.Kind{file.Name: ledger.File(), dir.Name: ledger.Dir()}[want.Kind.Name]
			write := kind.Write
			kind.Stage, kind.Write = nil, func(ctx context.Context, object string, to ledger.State) error {
				if armed {
					require.NoError(t, os.Rename(place, filepath.Join(top, "away")))
					require.NoError(t, os.Rename(other, place))
				}
				armed = false
				return write(ctx, object, to)
			}
			want.Kind = kind
			book := testledger.Open(t, testledger.Dir(t), kind)
			_, err := book.Apply(t.Context(), "step", ledger.Wants{List: []ledger.Want{want}})
			if c.undo {
				require.NoError(t, err)
				armed = true
				_, err = book.Undo(t.Context(), nil)
			}
			require.ErrorIs(t, err, ledger.ErrChanged)
			require.ErrorContains(t, err, "another has taken its place just now")
			names, err := filepath.Glob(filepath.Join(place, name+"*"))
			require.NoError(t, err)
			require.Len(t, names, 1)
			info, err := os.Stat(names[0])
			require.NoError(t, err)
			if info.IsDir() {
				require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
				return
			}
			content, err := os.ReadFile(names[0])
			require.NoError(t, err)
			require.Equal(t, "theirs", string(content))
		})
	}
}
