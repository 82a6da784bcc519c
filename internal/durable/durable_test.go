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

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// open opens a directory until the test ends.
func open(t testing.TB, path string) *durable.Dir {
	t.Helper()
	d, err := durable.OpenDir(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func TestWriteFileReplacesAndDoesNotFollowASymlink(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(victim, path))
	for _, content := range []string{"old and longer", "new"} {
		require.NoError(t, durable.WriteFile(path, 0o644, []byte(content)))
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.True(t, info.Mode().IsRegular())
		for file, want := range map[string]string{path: content, victim: "precious"} {
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
	}
	require.Equal(t, []string{"link", "victim"}, names(t, dir))
}

func TestFailureLeavesTheOldFileAndNoTemporaryOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	f, err := open(t, dir).Create("file", 0o644)
	require.NoError(t, err)
	_, err = f.WriteString("new")
	require.NoError(t, err)
	f.Abort()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	require.Equal(t, []string{"file"}, names(t, dir))

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d", "full"), 0o700))
	require.Error(t, durable.WriteFile(filepath.Join(dir, "d"), 0o600, nil), "a directory is in the way")
	require.Equal(t, []string{"d", "file"}, names(t, dir))
}

func TestMissingDirectoryIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "file")
	err := durable.WriteFile(path, 0o600, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, filepath.Dir(path))
}

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
