// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
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
