// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// A run can be killed between making the directory and the first entry, and between the last
// entry and removing the directory.
func TestPLAN3_WhatAKilledRunLeavesOfAJournalIsReverted(t *testing.T) {
	const temporary = ".slipway-ABCDEFGHIJKLMNOP.tmp"
	for what, files := range map[string]map[string]string{
		"a directory":       {},
		"kept content":      {"blob.00ff": "kept"},
		"a temporary file":  {temporary: "{"},
		"an empty journal":  {"agent.journal": string(file(aHeader))},
		"all of these":      {"blob.00ff": "kept", temporary: "{", "agent.journal": string(file(aHeader)), "agent.last.json": "{}"},
		"and another's too": {"blob.00ff": "kept", "notes.txt": "an administrator's"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o700|fs.ModeSticky)) // as a journal makes it
			for name, content := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
			}
			j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
			require.NoError(t, err)
			defer j.Close()
			empty, err := j.Empty()
			require.NoError(t, err)
			require.False(t, empty)
			_, err = j.RevertAll(context.Background())
			require.NoError(t, err)
			empty, err = j.Empty()
			require.NoError(t, err)
			require.True(t, empty)
			if files["notes.txt"] == "" {
				require.NoDirExists(t, dir)
				return
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
}

func TestADirectoryOfAnAdministratorsIsAnEmptyJournal(t *testing.T) {
	j, err := (&journal.Node{Dir: t.TempDir(), Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	require.NoError(t, err)
	defer j.Close()
	empty, err := j.Empty()
	require.NoError(t, err)
	require.True(t, empty)
}

// An apply without changes also clears what a killed run left.
func TestPLAN3_AnApplyClearsTheStateDirectory(t *testing.T) {
	dir := t.TempDir()
	temporary := filepath.Join(dir, ".slipway-ABCDEFGHIJKLMNOP.tmp")
	require.NoError(t, os.WriteFile(temporary, []byte("{"), 0o600))
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	require.NoError(t, err)
	defer j.Close()
	_, leave, err := j.Enter(context.Background(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	require.NoFileExists(t, temporary)
}

// An uninstall that was killed while restoring a file is finished by the next one, even if an
// apply that found nothing to change came in between.
func TestPLAN3_WhatAKilledUndoLeavesBesideAFileGoes(t *testing.T) {
	dir := t.TempDir()
	files, path := journal.Files{Kind: "acme"}, filepath.Join(dir, "file")
	temporary := filepath.Join(dir, ".slipway-ABCDEFGHIJKLMNOP.tmp")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	j, err := (&journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{files}}).Open(context.Background(), nil)
	require.NoError(t, err)
	defer j.Close()
	after, err := journal.Snapshot(t.Context(), path)
	require.NoError(t, err)
	after.SHA256, after.Size = sha256Of("after"), int64(len("after"))
	step := j.Step("test")
	require.NoError(t, files.Begin(t.Context(), step, path, after))
	require.NoError(t, os.WriteFile(path, []byte("after"), 0o600))
	require.NoError(t, files.Complete(t.Context(), step, path))
	require.NoError(t, os.WriteFile(temporary, []byte("bef"), 0o600))
	_, err = j.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, temporary)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before", string(raw))
}

func sha256Of(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
