// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// After several upgrades by several owners, a revert restores the original byte for byte.
func TestCNI8_RevertGivesBackTheOriginal(t *testing.T) {
	n := newNode(t)
	write(t, n.plugin("cilium-cni"), "original, not executable", 0o640)
	write(t, n.confFile(), "original", 0o644)
	write(t, filepath.Join(n.conf, "10-other.conflist"), "other", 0o644)
	n.ownLoopback()
	before := withoutTimes(t, n)
	i := n.install()
	for version, owner := range []string{"pod-a", "pod-b", "pod-b", "pod-c"} {
		n.source("cilium-cni", script("0.3.1", "1.0.0")+string(make([]byte, 5000*version)))
		i = n.ownedBy(owner, i)
		i.Config = agentOf(cniinstall.Agent{Debug: version%2 == 0})
		requireApplied(t, i, n.root)
	}
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"restore " + n.confFile(), "restore " + n.plugin("cilium-cni")}, changes)
	n.source("cilium-cni", script("0.3.1", "1.0.0"))
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, withoutTimes(t, n))
	require.Empty(t, journaltest.Entries(t, i.Journal))
}

// withoutTimes describes the node's files without their times, leaving out the source.
func withoutTimes(t *testing.T, n node) map[string]string {
	found := map[string]string{}
	for _, dir := range []string{n.bin, n.conf} {
		for path := range tree(t, dir) {
			info, err := os.Lstat(path)
			require.NoError(t, err)
			raw, _ := os.ReadFile(path)
			found[path] = info.Mode().String() + string(raw)
		}
	}
	return found
}

// A file changed since stays, and every revert reports it; the directory that holds it remains
// recorded, and is removed once empty.
func TestCNI8_ChangedSinceStays(t *testing.T) {
	n, i := installed(t)
	write(t, n.confFile(), "edited", 0o600)
	write(t, filepath.Join(n.bin, "foreign"), "foreign", 0o755)
	changes, foreseen := i.CheckRevert(t.Context())
	require.ErrorContains(t, foreseen, n.confFile()+" is no longer as it was left")
	require.Equal(t, "remove file "+n.plugin("cilium-cni"), changes[0])

	err := i.Revert(t.Context())
	require.ErrorContains(t, err, n.confFile()+" is no longer as it was left")
	requireContent(t, n.confFile(), "edited", 0o600)
	requireContent(t, n.plugin("foreign"), "foreign", 0o755)
	require.NoFileExists(t, n.plugin("cilium-cni"))

	for range 2 {
		err = i.Revert(t.Context())
		require.ErrorContains(t, err, n.confFile()+" is no longer as it was left")
		require.NotContains(t, err.Error(), "holds 05-cilium.conflist", "that was said")
		require.ErrorContains(t, err, "directory "+n.bin+" is kept: it holds foreign")
	}
	require.NoError(t, os.Remove(n.confFile()))
	require.NoError(t, os.Remove(filepath.Join(n.bin, "foreign")))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.root+"/opt")
	require.NoDirExists(t, n.root+"/etc")
	require.NoDirExists(t, n.state)
}

// A record that cannot be read stops every operation.
func TestCorruptRecord(t *testing.T) {
	n, i := installed(t)
	write(t, filepath.Join(n.state, "agent.journal"), `{"schema":99}`, 0o600)
	require.NoError(t, os.Remove(n.confFile()))
	before := tree(t, n.root)
	for _, err := range []error{
		i.Apply(t.Context()), i.Revert(t.Context()), second(i.Check(t.Context())), second(i.CheckRevert(t.Context())),
	} {
		require.ErrorContains(t, err, n.state+"/agent.journal")
	}
	require.Equal(t, before, tree(t, n.root))
}
