// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/configresolve"
)

var _ bootstrap.CheckReverter = configresolve.Write{}

func TestWriteConforms(t *testing.T) {
	for name, node := range map[string]func(t *testing.T, dir string){
		"no directory":       func(*testing.T, string) {},
		"an empty directory": func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o700)) },
		"files in the place of keys": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a"), "a file")
			require.NoError(t, os.Symlink("a", filepath.Join(dir, "b")))
		},
	} {
		for _, stateDir := range []string{"", "state"} {
			t.Run(name+" "+stateDir, func(t *testing.T) {
				root := t.TempDir()
				dir := filepath.Join(root, "d")
				node(t, dir)
				if stateDir != "" {
					stateDir = filepath.Join(root, stateDir)
				}
				before := tree(t, root)
				bootstraptest.Conform(t, func() bootstrap.Action {
					return configresolve.Write{Dir: dir, Config: config(t, values{"a": "1", "b": "2"}), StateDir: stateDir}
				})
				if stateDir != "" {
					require.Equal(t, before, tree(t, root))
				}
			})
		}
	}
}

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
		changes, err := configresolve.Write{Dir: dir, Config: config(t, v)}.Check(t.Context())
		require.NoError(t, err)
		return changes
	}
	require.Equal(t, []string{"write 3 keys to " + dir}, check(values{"a": "1"}))
	require.NoDirExists(t, dir)
	writeDir(t, dir, config(t, values{"a": "1", "b": "1", "c": "1"}))
	require.Empty(t, check(values{"a": "1", "b": "1", "c": "1"}))

	before := state(t, dir)
	write(t, filepath.Join(dir, "..data_1", "x"), "")
	require.NoError(t, os.Remove(filepath.Join(dir, "c")))
	require.Equal(t, []string{"write " + dir + "/b", "link " + dir + "/c", "write " + dir + "/d", "remove " + dir + "/a", "remove leftover " + dir + "/..data_1"},
		check(values{"b": "2", "c": "1", "d": ""}))
	require.NotEqual(t, before, state(t, dir))
}

func TestWriteRevertRestoresAfterManyApplies(t *testing.T) {
	root := t.TempDir()
	dir, stateDir := filepath.Join(root, "d"), filepath.Join(root, "state")
	write(t, filepath.Join(dir, "b"), "a person's file")
	write(t, filepath.Join(dir, "other"), "another")
	before := tree(t, root)
	action := func(v values) configresolve.Write {
		return configresolve.Write{Dir: dir, Config: config(t, v), StateDir: stateDir}
	}
	for _, v := range []values{{"a": "1"}, {"a": "2", "b": "1"}, {"b": "2", "c": ""}, {"c": "3"}, {"c": "3"}, {"a": "1", "b": "3"}, {"a": "4"}} {
		require.NoError(t, action(v).Apply(t.Context()))
		changes, err := action(v).Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
	}
	lines, err := configresolve.Write{StateDir: stateDir}.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Contains(t, lines, "remove configuration from "+dir)
	require.Contains(t, lines, "restore "+filepath.Join(dir, "b"))
	require.NoError(t, configresolve.Write{StateDir: stateDir}.Revert(t.Context()))
	require.Equal(t, before, tree(t, root))
}

func TestWriteRevertLeavesWhatSomebodyChanged(t *testing.T) {
	root := t.TempDir()
	dir, stateDir := filepath.Join(root, "d"), filepath.Join(root, "state")
	action := configresolve.Write{Dir: dir, Config: config(t, values{"a": "1"}), StateDir: stateDir}
	require.NoError(t, action.Apply(t.Context()))
	theirs := config(t, values{"a": "theirs"})
	writeDir(t, dir, theirs)
	require.ErrorContains(t, action.Revert(t.Context()), dir)
	requireLayout(t, dir, theirs)
	require.NoDirExists(t, stateDir)
	require.NoError(t, action.Revert(t.Context()), "reported once")
}

func TestWriteRevertLeavesAnOlderLayout(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "d")
	writeDir(t, dir, config(t, values{"a": "older"}))
	action := configresolve.Write{Dir: dir, Config: config(t, values{"a": "1"}), StateDir: filepath.Join(root, "state")}
	require.NoError(t, action.Apply(t.Context()))
	require.ErrorContains(t, action.Revert(t.Context()), "not kept")
	requireLayout(t, dir, config(t, values{"a": "1"}))
}

func TestWriteUnchangedApplyWritesNothing(t *testing.T) {
	root := t.TempDir()
	action := configresolve.Write{Dir: filepath.Join(root, "d"), Config: wholeConfig(t), StateDir: filepath.Join(root, "state")}
	require.NoError(t, action.Apply(t.Context()))
	before := state(t, root)
	require.NoError(t, action.Apply(t.Context()))
	require.Equal(t, before, state(t, root))
}

func TestWriteWithoutWhatItNeeds(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, configresolve.Write{Dir: dir}.Revert(t.Context()), errors.ErrUnsupported)
	_, err := configresolve.Write{Dir: dir}.CheckRevert(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for _, w := range []configresolve.Write{{Dir: dir}, {Dir: dir, StateDir: dir}, {Config: config(t, nil)}, {Config: config(t, nil), StateDir: dir}} {
		require.Error(t, w.Apply(t.Context()))
		_, err := w.Check(t.Context())
		require.Error(t, err)
		require.Empty(t, list(t, dir))
	}
}
