// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/durable"
)

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(elements ...string) string { return filepath.Join(append([]string{dir}, elements...)...) }
	require.NoError(t, os.MkdirAll(at("a", "b"), 0o755))
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	for link, target := range map[string]string{
		"absolute": at("a"), "relative": "a/b", "dangling": "gone/deep", "chain": "relative",
		"loop": "loop", "a/up": "..", "slashes": "a//b/", "a/b/absent": at("x", "..", "y"),
	} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	t.Chdir(dir)

	for path, want := range map[string]string{
		dir:                      dir,
		dir + "/":                dir,
		dir + "//a/./b//":        at("a", "b"),
		dir + "/a/../file":       at("file"),
		dir + "/relative/..":     at("a"), // not dir: ".." of where the link leads
		dir + "/absolute/b":      at("a", "b"),
		dir + "/chain/new":       at("a", "b", "new"),
		dir + "/dangling":        at("gone", "deep"),
		dir + "/dangling/x":      at("gone", "deep", "x"),
		dir + "/missing/../x":    at("x"),
		dir + "/a/up/a/up":       dir,
		dir + "/slashes":         at("a", "b"),
		dir + "/a/b/absent":      at("y"),
		"a":                      at("a"),
		"./relative/":            at("a", "b"),
		"relative/../new":        at("a", "new"),
		".":                      dir,
		"/":                      "/",
		"/..":                    "/",
		"/../" + dir + "/a/b/..": at("a"),
	} {
		got, err := durable.Resolve(path)
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
	}
	for path, want := range map[string]string{
		"":              "empty path",
		dir + "/loop":   "open directory " + dir + "/loop: too many levels of symbolic links",
		dir + "/file/x": "not a directory",
	} {
		_, err := durable.Resolve(path)
		require.ErrorContains(t, err, want, path)
	}
}
