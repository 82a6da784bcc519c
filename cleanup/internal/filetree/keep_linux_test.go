// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
)

func TestKeep(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "here")))
	k := &filetree.Keep{}
	k.AddAll(filepath.Join(dir, "here", "all"))
	k.AddDir(filepath.Join(dir, "dir"))
	for name, kept := range map[string]bool{
		"all": true, "all/x/y": true, "dir": true, "dir/x": false, "other": false, "al": false, "": false,
	} {
		require.Equal(t, kept, k.Keeps(filepath.Join(dir, name)), name)
	}
	require.False(t, (*filetree.Keep)(nil).Keeps("/x"))
}

// RemoveAll removes everything below, however deep, except kept paths.
func TestRemoveAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	deep := dir
	for range 40 {
		deep = filepath.Join(deep, "d")
	}
	require.NoError(t, os.MkdirAll(deep, 0o700))
	for _, name := range []string{filepath.Join(deep, "x"), filepath.Join(dir, "d", "kept"), filepath.Join(dir, "z")} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	k := &filetree.Keep{}
	k.AddAll(filepath.Join(dir, "d", "kept"))
	tree, err := filetree.Open(dir)
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.RemoveAll(t.Context(), k))
	require.FileExists(t, filepath.Join(dir, "d", "kept"))
	require.NoFileExists(t, filepath.Join(dir, "z"))
	require.NoDirExists(t, filepath.Join(dir, "d", "d"))
	require.NoError(t, tree.RemoveAll(t.Context(), nil))
	require.NoDirExists(t, dir)
	tree, err = filetree.Open(dir)
	require.NoError(t, err)
	require.Nil(t, tree)
	for _, path := range []string{"/", "relative", ""} {
		_, err := filetree.Open(path)
		require.Error(t, err, path)
	}
}
