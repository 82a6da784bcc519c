// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

func TestNotesAreTheVersionsSection(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## v0.1.1, 2030-01-02\n\n- later\n\n## v0.1.0\n\nNew\n\n- first\n"
	for version, want := range map[string]string{
		"v0.1.0":      "# v0.1.0\n\nNew\n\n- first\n",
		"v0.1.1":      "",
		"v0.2.0-rc.1": "# v0.2.0-rc.1\n\n- new\n",
	} {
		got, err := notes(changelog, version)
		if want == "" {
			require.ErrorContains(t, err, "CHANGELOG.md has no section "+version, "a heading is the version alone, or a space follows it")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := notes(changelog, "v0.2.0")
	require.ErrorContains(t, err, "CHANGELOG.md has no section v0.2.0")
}

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "v0.1.0+x", "v01.0.0", "v0.1.0 --x"} {
		require.ErrorContains(t, (&release{version: version}).run(t.Context()), "is no version", version)
	}
}

func TestAnArchiveHasTheSameBytesEachTime(t *testing.T) {
	files := []image.File{{Path: "/x/b", Mode: 0o755, Content: []byte("b")}, {Path: "/x/a", Mode: 0o644}}
	first, err := tarball(files)
	require.NoError(t, err)
	second, err := tarball(files)
	require.NoError(t, err)
	require.Equal(t, first, second)
	r, err := gzip.NewReader(bytes.NewReader(first))
	require.NoError(t, err)
	require.Zero(t, r.ModTime)
	raw, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Contains(t, string(raw), "x/a")
}
