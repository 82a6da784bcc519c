// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file changed since stays, and every revert reports it; the directory that holds it remains
// recorded, and is removed once empty.
func TestCNI8_ChangedSinceStays(t *testing.T) {
	n, i := installed(t)
	write(t, n.confFile(), "edited", 0o600)
	write(t, filepath.Join(n.bin, "foreign"), "foreign", 0o755)
	changes, foreseen := i.CheckRevert(t.Context())
	require.ErrorContains(t, foreseen, n.confFile()+" is no longer as it was left")
	require.Empty(t, changes, "it keeps the plugins that it needs")

	err := i.Revert(t.Context())
	require.ErrorContains(t, err, n.confFile()+" is no longer as it was left")
	requireContent(t, n.confFile(), "edited", 0o600)
	requireContent(t, n.plugin("foreign"), "foreign", 0o755)
	require.FileExists(t, n.plugin("cilium-cni"))

	require.NoError(t, os.Remove(n.confFile()))
	for range 2 {
		require.ErrorContains(t, i.Revert(t.Context()), n.bin+" is no longer as it was left: it holds foreign")
		require.NoFileExists(t, n.plugin("cilium-cni"))
		require.FileExists(t, n.plugin("foreign"))
	}
	require.NoError(t, os.Remove(filepath.Join(n.bin, "foreign")))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.root+"/opt")
	require.NoDirExists(t, n.root+"/etc")
	require.NoDirExists(t, n.state)
}

// A record that cannot be read stops every operation.
func TestCorruptRecord(t *testing.T) {
	n, i := installed(t)
	write(t, filepath.Join(n.state, "ledger"), `{"schema":99}`, 0o600)
	require.NoError(t, os.Remove(n.confFile()))
	before := tree(t, n.root)
	for _, err := range []error{
		i.Apply(t.Context()), i.Revert(t.Context()), second(i.Check(t.Context())), second(i.CheckRevert(t.Context())),
	} {
		require.ErrorContains(t, err, n.state)
	}
	require.Equal(t, before, tree(t, n.root))
}
