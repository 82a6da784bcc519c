// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// one is the action for a single path.
func one(path string, t string) testledger.Step {
	return testledger.Step{Wanter: hostpath.Paths{{Path: path, Type: t}}}
}

func write(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

func requireMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Perm(), path)
}

func requireContent(t *testing.T, path, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(content))
}

func TestHP1_Makes(t *testing.T) {
	node := t.TempDir()
	a := testledger.Step{Wanter: hostpath.Paths{
		{node + "/a/b/", "DirectoryOrCreate"},
		{node + "/a/c", "DirectoryOrCreate"},
		{node + "/a/b", "Directory"},
		{node + "/a/b/file", "FileOrCreate"},
		{node + "/a/b/file", "File"},
	}}
	require.Equal(t, []string{
		"make directory " + node + "/a",
		"make directory " + node + "/a/b",
		"make directory " + node + "/a/c",
		"make file " + node + "/a/b/file",
	}, testledger.Changes(t, a))
	require.NoDirExists(t, node+"/a")

	require.NoError(t, a.Apply(t.Context()))
	for path, mode := range map[string]fs.FileMode{"/a": 0o755, "/a/b": 0o755, "/a/c": 0o755, "/a/b/file": 0o644} {
		requireMode(t, node+path, mode)
	}
	requireContent(t, node+"/a/b/file", "")
}

func TestHP1_WhatExistsIsLeftAsItIs(t *testing.T) {
	node := t.TempDir()
	state := filepath.Join(node, "slipway")
	dir, file := filepath.Join(node, "dir"), filepath.Join(node, "file")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(file, []byte("theirs"), 0o600))
	a := testledger.Step{Wanter: hostpath.Paths{
		{dir, "DirectoryOrCreate"}, {file, "FileOrCreate"},
	}, Book: testledger.Open(t, state)}
	require.NoError(t, a.Apply(t.Context()))
	require.NoDirExists(t, state, "nothing changed, nothing testledger.Step")
	require.NoError(t, a.Undo(t.Context()))
	requireContent(t, file, "theirs")
	requireMode(t, dir, 0o700)
}

// Each refused path is an error of Check and of Apply, and changes nothing.
func TestHP1_Refuses(t *testing.T) {
	node := t.TempDir()
	dir := filepath.Join(node, "dir")
	require.NoError(t, os.Mkdir(dir, 0o755))
	file := write(t, filepath.Join(node, "file"))
	missing := filepath.Join(node, "missing")
	dangling := filepath.Join(node, "dangling")
	require.NoError(t, os.Symlink(missing, dangling))
	before := names(t, node)

	for name, tc := range map[string]struct {
		path hostpath.Path
		want string
	}{
		"file for directory":       {hostpath.Path{file, "Directory"}, file + " is a File, and must be a Directory"},
		"file for made directory":  {hostpath.Path{file, "DirectoryOrCreate"}, file + " is a File, and must be a Directory"},
		"directory for file":       {hostpath.Path{dir, "File"}, dir + " is a Directory, and must be a File"},
		"directory for made file":  {hostpath.Path{dir, "FileOrCreate"}, dir + " is a Directory, and must be a File"},
		"missing directory":        {hostpath.Path{missing, "Directory"}, missing + " does not exist, and must be a Directory"},
		"parent is not made":       {hostpath.Path{missing + "/file", "FileOrCreate"}, "directory " + missing + " does not exist; list it before as DirectoryOrCreate"},
		"parent is a file":         {hostpath.Path{file + "/dir/x", "DirectoryOrCreate"}, "not a directory"},
		"file in a file":           {hostpath.Path{file + "/x", "FileOrCreate"}, "not a directory"},
		"link to nowhere":          {hostpath.Path{dangling, "DirectoryOrCreate"}, dangling + " is a symbolic link to " + missing + ", which does not exist"},
		"file for a link's target": {hostpath.Path{dangling, "FileOrCreate"}, "which does not exist; it must be a File"},
		"below a link to nowhere":  {hostpath.Path{dangling + "/x", "DirectoryOrCreate"}, dangling + " is a symbolic link to " + missing},
		"unknown type":             {hostpath.Path{dir, "Dir"}, `has the unknown type "Dir"; known are ["Directory" "DirectoryOrCreate" `},
		"relative":                 {hostpath.Path{"run/x", "DirectoryOrCreate"}, `"run/x" is not absolute`},
		"relative, of any type":    {hostpath.Path{"run/x", ""}, `"run/x" is not absolute`},
		"empty":                    {hostpath.Path{"", "Directory"}, `"" is not absolute`},
		"back steps":               {hostpath.Path{dir + "/../x", "DirectoryOrCreate"}, `has a ".." in it`},
		"zero byte":                {hostpath.Path{dir + "/\x00", "DirectoryOrCreate"}, "holds a zero byte"},
	} {
		t.Run(name, func(t *testing.T) {
			a := testledger.Step{Wanter: hostpath.Paths{tc.path}, Book: testledger.Open(t, filepath.Join(node, "slipway"))}
			changes, err := a.Check(t.Context())
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, changes)
			require.Equal(t, codeOf(err.Error()), code.Of(err))
			require.ErrorContains(t, a.Apply(t.Context()), tc.want)
			require.Equal(t, before, names(t, node))
		})
	}
}

// codeOf returns the expected code of an error with the text.
func codeOf(text string) string {
	switch {
	case strings.Contains(text, "does not exist"):
		return "hostpath.missing"
	case strings.Contains(text, "must be a"), strings.Contains(text, "not a directory"):
		return "hostpath.wrong-type"
	}
	return ""
}

// names lists dir and its content.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}

func TestOneBadPathDoesNotStopTheRest(t *testing.T) {
	node := t.TempDir()
	a := testledger.Step{Wanter: hostpath.Paths{
		{node + "/no", "File"},
		{node + "/yes", "DirectoryOrCreate"},
		{node + "/never", "Socket"},
	}}
	changes, err := a.Check(t.Context())
	require.Equal(t, []string{"make directory " + node + "/yes"}, changes)
	require.ErrorContains(t, err, node+"/no does not exist")
	require.ErrorContains(t, err, node+"/never does not exist")

	err = a.Apply(t.Context())
	require.ErrorContains(t, err, node+"/no does not exist")
	require.ErrorContains(t, err, node+"/never does not exist")
	require.DirExists(t, node+"/yes")
}

func TestHP1_LockOfIptablesIsNeverRemoved(t *testing.T) {
	node := t.TempDir()
	lock := node + "/run/xtables.lock"
	a := testledger.Step{Wanter: hostpath.Paths{
		{node + "/run", "DirectoryOrCreate"},
		{lock, "FileOrCreate"},
		{node + "/run/other.lock", "FileOrCreate"},
	}, Book: testledger.Open(t, filepath.Join(node, "slipway"))}
	require.NoError(t, a.Apply(t.Context()))
	require.FileExists(t, lock)
	changes, err := a.CheckUndo(t.Context())
	require.ErrorContains(t, err, "holds xtables.lock")
	require.Equal(t, []string{
		"remove file " + node + "/run/other.lock", "leave " + lock + " as it is: a process may hold this lock",
	}, changes)
	require.ErrorContains(t, a.Undo(t.Context()), "holds xtables.lock")
	require.NoFileExists(t, node+"/run/other.lock")
	require.FileExists(t, lock)

	require.NoError(t, os.Remove(lock))
	require.NoError(t, a.Undo(t.Context()))
	require.NoDirExists(t, filepath.Join(node, "slipway"))
}

// A path that one agent made stays for another that needs it, even if the other reaches it
// through a link, or would not make it.
func TestPLAN14_WhatAnotherNeedsStays(t *testing.T) {
	for _, types := range [][2]string{{"DirectoryOrCreate", "FileOrCreate"}, {"Directory", "File"}} {
		root := t.TempDir()
		links := filepath.Join(root, "links")
		require.NoError(t, os.Mkdir(links, 0o755))
		dir, file := filepath.Join(root, "dir"), filepath.Join(root, "file")
		for _, path := range []string{dir, file} {
			require.NoError(t, os.Symlink(path, filepath.Join(links, filepath.Base(path))))
		}
		makes := hostpath.Paths{{Path: dir, Type: "DirectoryOrCreate"}, {Path: file, Type: "FileOrCreate"}}
		needs := hostpath.Paths{{Path: filepath.Join(links, "dir"), Type: types[0]}, {Path: filepath.Join(links, "file"), Type: types[1]}}
		first, second := on(root, makes), on(root, needs)
		second.Ledger.Agent = "second"
		for _, p := range []*bootstrap.Plan{first, second} {
			_, err := p.Apply(t.Context())
			require.NoError(t, err)
		}
		report, err := second.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		_, err = first.Uninstall(t.Context())
		require.NoError(t, err)
		require.DirExists(t, dir)
		require.FileExists(t, file)
		_, err = second.Uninstall(t.Context())
		require.NoError(t, err)
		require.NoDirExists(t, dir)
		require.NoFileExists(t, file)
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}

// A path that could not be looked at is not taken for present, even if it can be looked at a
// moment later.
func TestPLAN3_HP1_APathThatCannotBeReadIsNotTakenForPresent(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.Symlink(loop, loop))
	for path, is := range map[string]string{loop: "DirectoryOrCreate", loop + "/a": "DirectoryOrCreate", loop + "/b": "FileOrCreate"} {
		wants, err := hostpath.Paths{{Path: path, Type: is}}.Wants(t.Context())
		require.NoError(t, err)
		require.Len(t, wants.List, 1)
		defer func() {
			require.ErrorContains(t, wants.List[0].Ready(t.Context()), "too many levels of symbolic links", path)
		}()
	}
	require.NoError(t, os.Remove(loop))
	require.NoError(t, os.MkdirAll(loop+"/a", 0o755))
}
