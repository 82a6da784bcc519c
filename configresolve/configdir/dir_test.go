// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/code"
)

var (
	_ ledger.Wanter     = configdir.Writer{}
	_ bootstrap.Adviser = configdir.Writer{}
)

// tree maps every path below root to its mode and content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
		} else if info.Mode()&os.ModeSymlink != 0 {
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		found[path] = info.Mode().String() + " " + content
		return nil
	}))
	return found
}

func TestWriteCheckNamesKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	check := func(v values) []string {
		changes, err := ledger.Check(t.Context(), configdir.Writer{Path: dir, Config: config(t, v)})
		require.NoError(t, err)
		return changes
	}
	require.Equal(t, []string{"make directory " + dir, "write 3 keys to " + dir}, check(values{"a": "1"}))
	require.NoDirExists(t, dir)
	writeDir(t, dir, config(t, values{"a": "1", "b": "1", "c": "1"}))
	require.Empty(t, check(values{"a": "1", "b": "1", "c": "1"}))

	before := state(t, dir)
	write(t, filepath.Join(dir, "..data_1", "x"), "")
	require.NoError(t, os.Remove(filepath.Join(dir, "c")))
	require.Equal(t, []string{"write " + dir + "/b; link " + dir + "/c; write " + dir + "/d; remove " + dir + "/a; remove leftover " + dir + "/..data_1"},
		check(values{"b": "2", "c": "1", "d": ""}))
	require.NotEqual(t, before, state(t, dir))
}

// An unset variable or an empty file must not empty an agent's configuration.
func TestCFG7_AConfigurationIsNotReplacedByNone(t *testing.T) {
	for _, records := range []bool{false, true} {
		root := t.TempDir()
		w := newRecorded(t, root, nil)
		if !records {
			w.state = ""
		}
		none, err := configresolve.Resolve(t.Context(), configresolve.File(write(t, filepath.Join(root, "empty.yaml"), "")))
		require.NoError(t, err)
		w.Config = none
		require.NoError(t, w.Apply(t.Context()), "nothing is lost")
		require.NoError(t, w.Apply(t.Context()))

		w.Config = config(t, values{"a": "1", "b": "2"})
		require.NoError(t, w.Apply(t.Context()))
		before := state(t, w.Path)
		w.Config = none
		_, checkErr := w.Check(t.Context())
		_, writeErr := configdir.Write(t.Context(), w.Path, none)
		for _, err := range []error{checkErr, writeErr, w.Apply(t.Context())} {
			require.ErrorIs(t, err, configdir.ErrEmpty)
			require.Equal(t, "config.empty", code.Of(err))
			require.ErrorContains(t, err, w.Path)
			require.ErrorContains(t, err, "2 keys would be removed")
		}
		require.Equal(t, before, state(t, w.Path))
	}
}
