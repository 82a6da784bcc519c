// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve/configdir"
)

// Two agents without containers name the same directory: with equal configurations it stays
// until both are reverted; with different ones the check reports a conflict.
func TestPLAN14_ADirectoryOfTwoAgents(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "config")
	agent := func(name string, v values) recorded {
		j, err := (&journal.Node{Dir: filepath.Join(root, "state"), Agent: name, NoOwner: true, Handlers: []journal.Handler{configdir.Handler{}}}).Open(t.Context(), nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return recorded{configdir.Writer{Path: dir, Config: config(t, v)}, j.Step("config")}
	}
	first := agent("first", values{"mtu": "1500"})
	require.NoError(t, first.Apply(t.Context()))
	other := agent("second", values{"mtu": "9000"})
	_, err := other.Check(t.Context())
	require.ErrorIs(t, err, journal.ErrConflict)
	require.ErrorIs(t, other.Apply(t.Context()), journal.ErrConflict)

	second := agent("second", values{"mtu": "1500"})
	changes, err := second.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`keep ` + dir + `/..data also for this agent: agent "first" has made it`}, changes)
	require.NoError(t, second.Apply(t.Context()))
	require.NoError(t, first.Journal.Undo(t.Context(), configdir.Handler{}))
	require.FileExists(t, filepath.Join(dir, "mtu"))
	second = agent("second", values{"mtu": "1500"})
	require.NoError(t, second.Journal.Undo(t.Context(), configdir.Handler{}))
	require.NoDirExists(t, dir)
}
