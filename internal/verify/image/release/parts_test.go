// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
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
