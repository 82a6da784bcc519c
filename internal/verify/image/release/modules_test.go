// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is a repository of two modules, of which one imports the other, and of one that
// is not published.
func repository(t *testing.T, changed map[string]string) *release {
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25\n", "m.go": "package m\n\nconst V = 1\n",
		"part/go.mod":       "module example.com/m/part\n\ngo 1.25\n\nreplace example.com/m => ..\n\nrequire example.com/m v0.1.0\n",
		"part/part.go":      "package part\n\nimport \"example.com/m\"\n\nvar _ = m.V\n",
		"internal/x/go.mod": "module example.com/m/internal/x\n\ngo 1.25\n\nrequire example.com/m v0.0.0\n", "internal/x/x.go": "package x\n\nconst V = 1\n",
		"part/testdata/y/go.mod": "none\n",
	}
	maps.Copy(files, changed)
	r := &release{version: "v0.1.0", clone: t.TempDir(), time: "2030-01-02T03:04:05Z"}
	for name, content := range files {
		path := filepath.Join(r.clone, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "-m", "x"}} {
		_, err := git(t.Context(), r.clone, args...)
		require.NoError(t, err)
	}
	return r
}

func TestAnImporterGetsTheSameVersionOfEachModule(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for name, c := range map[string]struct {
		changed map[string]string
		want    string
	}{
		"so it is": {},
		"no version": {
			map[string]string{"part/go.mod": "module example.com/m/part\n\ngo 1.25\n\nreplace example.com/m => ..\n\nrequire example.com/m v0.0.0-00010101000000-000000000000\n"},
			"an importer of example.com/m/part would get example.com/m@v0.0.0-00010101000000-000000000000: go mod edit -require=example.com/m@v0.1.0 part/go.mod",
		},
		"a module that is only here": {
			map[string]string{
				"part/go.mod":  "module example.com/m/part\n\ngo 1.25\n\nreplace example.com/m/internal/x => ../internal/x\n\nrequire example.com/m/internal/x v0.0.0\n",
				"part/part.go": "package part\n\nimport \"example.com/m/internal/x\"\n\nvar _ = x.V\n",
			},
			"example.com/m/part imports\n\texample.com/m/internal/x: module lookup disabled",
		},
		"a package that is not committed": {
			map[string]string{".gitignore": "/gone/\n", "gone/gone.go": "package gone\n", "other/other.go": "package other\n\nimport _ \"example.com/m/gone\"\n"},
			"example.com/m/gone",
		},
		"a file that is not committed": {
			map[string]string{"m.go": "package m\n\nimport _ \"embed\"\n\n//go:embed .gitignore\nvar V string\n", ".gitignore": "/.gitignore\n"},
			"pattern .gitignore: no matching files found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := repository(t, c.changed)
			require.NoError(t, r.listed(t.Context()))
			require.Len(t, r.modules, 2)
			require.NoError(t, r.tagged(t.Context()))
			tags, err := git(t.Context(), r.clone, "tag")
			require.NoError(t, err)
			require.Equal(t, "part/v0.1.0\nv0.1.0", tags)
			if err := r.importable(t.Context()); c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestNotesSayWhatThereIsAndLinkToTheVersion(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\nIn [EVIDENCE.md](EVIDENCE.md) of [Go](https://go.dev).\n\n## v0.0.9 (2026)\n\nOld.\n"
	changed, err := changes(changelog, "v0.1.0-rc.1")
	require.NoError(t, err)
	text := string(notes(changed, "v0.1.0-rc.1", "c0ffee", "go1.26.8"))
	require.Contains(t, text, "In [EVIDENCE.md](https://github.com/slipway-dev/slipway/blob/v0.1.0-rc.1/EVIDENCE.md) of [Go](https://go.dev).\n")
	require.Contains(t, text, "VERSION=v0.1.0-rc.1` in a clone at that tag, with go1.26.8, gives the same bytes: these are of commit c0ffee.")
	require.NotRegexp(t, `Old\.|\{[^a]`, text)
	_, err = changes(changelog, "v0.1.0")
	require.ErrorContains(t, err, "CHANGELOG.md has no section v0.1.0")
}
