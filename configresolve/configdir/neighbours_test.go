// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func TestPLAN14_ADirectoryOfTwoAgents(t *testing.T) {
	root := t.TempDir()
	agent := func(name string, v values) recorded {
		r := newRecorded(t, root, v)
		r.agent = name
		return r
	}
	first := agent("first", values{"mtu": "1500"})
	require.NoError(t, first.Apply(t.Context()))
	other := agent("second", values{"mtu": "9000"})
	_, err := other.Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrConflict)
	require.ErrorIs(t, other.Apply(t.Context()), ledger.ErrConflict)

	second := agent("second", values{"mtu": "1500"})
	changes, err := second.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`keep ` + first.Path + ` also for this agent: agent "first" has made it`}, changes)
	require.NoError(t, second.Apply(t.Context()))
	require.NoError(t, first.Undo(t.Context()))
	require.FileExists(t, filepath.Join(first.Path, "mtu"))
	require.NoError(t, second.Undo(t.Context()))
	require.NoDirExists(t, first.Path)
}
