// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// A text that JSON cannot represent would be read back as another one: an owner would never be
// recognized, a link would point elsewhere. It is refused before anything is recorded.
func TestPLAN6_WhatIsNoUTF8IsRefused(t *testing.T) {
	const bad = "caf\xe9"
	dir := filepath.Join(t.TempDir(), "state")
	_, err := (&journal.Node{Dir: dir, Agent: "agent", Owner: bad}).Open(context.Background(), nil)
	require.ErrorContains(t, err, `owner "caf\xe9" is not UTF-8`)

	j, err := (&journal.Node{Dir: dir, Agent: "agent", Owner: "café"}).Open(context.Background(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	good := journal.Entry{Kind: "acme/value", Object: "/a"}
	for name, change := range map[string]func(*journal.Entry){
		"object": func(e *journal.Entry) { e.Object = bad },
		"needs":  func(e *journal.Entry) { e.Needs = []string{bad} },
		"target": func(e *journal.Entry) { e.Before = journal.State{Type: "symlink", Target: bad} },
		"value":  func(e *journal.Entry) { e.After.Value = bad },
	} {
		e := good
		change(&e)
		require.ErrorContains(t, j.Step("s").Begin(t.Context(), e), `"caf\xe9" is not UTF-8`, name)
	}
	require.NoDirExists(t, dir)
	require.NoError(t, j.Step("s").Begin(t.Context(), good))
}
