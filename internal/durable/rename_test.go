// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/durable"
)

// No existing name is overwritten, also on a file system that cannot check and rename in
// one step.
func TestRenameNew(t *testing.T) {
	for name, rename := range map[string]func(d *durable.Dir, from, to string) error{
		"at once": (*durable.Dir).RenameNew, "looking first": (*durable.Dir).RenameChecked,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir)
			require.NoError(t, d.WriteFile("from", 0o600, []byte("mine")))
			require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "to")))
			require.ErrorIs(t, rename(d, "from", "to"), fs.ErrExist)
			require.FileExists(t, filepath.Join(dir, "from"))
			require.NoError(t, d.Remove("to"))
			require.NoError(t, rename(d, "from", "to"))
			content, err := d.ReadFile("to", 10)
			require.NoError(t, err)
			require.Equal(t, "mine", string(content))
			require.ErrorIs(t, rename(d, "from", "to2"), fs.ErrNotExist)
			require.ErrorIs(t, d.Rename("from", "to2"), fs.ErrNotExist)
		})
	}
}
