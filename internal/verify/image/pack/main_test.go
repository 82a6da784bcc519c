// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const largest = 8 << 20

// copyModule copies what the program is built from, as a checkout elsewhere
// would have it.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		name, err := filepath.Rel(from, path)
		require.NoError(t, err)
		if d.IsDir() {
			if name == ".git" || name == "bin" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(to, name), content, 0o644)
	}))
}

func TestTwoBuildsAreTheSame(t *testing.T) {
	var results []map[string]string
	for range 2 {
		source, out := t.TempDir(), t.TempDir()
		copyModule(t, "../../../..", source)
		p := packer{dir: out, source: source, name: "slipway/nodeinit:test"}
		require.NoError(t, p.run(t.Context(), []string{"amd64", "arm64"}))
		results = append(results, files(t, out))
	}
	require.Equal(t, results[0], results[1])
	require.Len(t, results[0], 2+2+2*3+1, "archives, head of the layout, three parts of each image and their index")
	for name, content := range results[0] {
		require.Less(t, len(content), largest, name)
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		all[name] = string(content)
		return nil
	}))
	return all
}
