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

// A file that others rewrite is undone whatever its content, and wherever the step was killed;
// an object of another type in its place is not ours.
func TestHP3_AFileIsUndoneWhateverItsContent(t *testing.T) {
	content := []byte("ours")
	for _, original := range []string{"", "original"} {
		for _, killed := range []string{"", "before it was completed", "when it was begun again", "in a later version, which wrote no more"} {
			path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
			if original != "" {
				write(t, path, original, 0o640)
			}
			before := takeSnapshot(t, filepath.Dir(path))
			j := openFiles(t, state)
			ctx := step(t, j, "files")
			begin := func(content string) {
				e, err := acme.Entry(ctx, j, path, journal.FileState([]byte(content), 0o600))
				require.NoError(t, err)
				e.Any = true
				require.NoError(t, j.Begin(ctx, e))
			}
			begin("ours")
			write(t, path, "ours", 0o600)
			if killed != "before it was completed" {
				write(t, path, "refreshed at once", 0o600)
				require.NoError(t, acme.Complete(ctx, j, path))
			}
			if killed == "when it was begun again" {
				begin("ours, anew")
			}
			require.NoError(t, os.Remove(path))
			write(t, path, "refreshed", 0o644)
			j = openFiles(t, state)
			ctx = step(t, j, "files")
			if killed == "in a later version, which wrote no more" {
				begin("ours, anew")
				begin("ours")
			}
			e := entries(t, j)[0]
			require.True(t, e.Any)
			require.True(t, e.After.Same(journal.FileState(content, 0o600)) || killed == "when it was begun again", "After is the wanted state")
			require.NoError(t, j.Revert(ctx), "%q, killed %s", original, killed)
			require.Equal(t, before, takeSnapshot(t, filepath.Dir(path)), "%q, killed %s", original, killed)
		}
	}
}

func TestHP3_WhatIsNoFileAnyMoreIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx := step(t, j, "files")
	e, err := acme.Entry(ctx, j, path, journal.State{Type: "file"})
	require.NoError(t, err)
	e.Any = true
	require.NoError(t, j.Begin(ctx, e))
	require.NoError(t, os.Symlink("elsewhere", path))
	require.NoError(t, acme.Complete(ctx, j, path))
	require.ErrorIs(t, j.Revert(ctx), journal.ErrChanged)
	require.NoError(t, os.Remove(path))
	write(t, path, "", 0o600)
	require.NoError(t, os.Truncate(path, 1<<40), "it is not read to the end")
	require.NoError(t, j.Revert(ctx))
	require.NoFileExists(t, path)
}
