// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A small storm, as a test that all of it works: every node resolves, also
// under priority and fairness, and over an API server that is killed.
func TestStorm(t *testing.T) {
	p := plan{
		nodes: 200, nodeConfigs: 50, over: 8 * time.Second, away: 2 * time.Second, spread: 4 * time.Second,
		wave:      100, // so few nodes tell nothing of waves
		manifests: "../../../../../examples/deploy/priority.yaml", run: scenarios,
	}
	var out bytes.Buffer
	err := p.storm(t.Context(), &out)
	t.Logf("\n%s", out.String())
	require.NoError(t, err)
	for _, name := range scenarios {
		require.Regexp(t, `(?m)^`+name+` +200 +\d+ \|`, out.String())
	}
	for _, name := range []string{"plain", "fairness"} {
		require.Regexp(t, `(?m)^`+name+` +200 +0 \| +[\d.]+ +[\d.]+ +[\d.]+ \| +3\.\d+ `, out.String())
	}
	require.FileExists(t, p.manifests)
}
