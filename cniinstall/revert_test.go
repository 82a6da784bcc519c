// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Nothing recorded, and no place for a record.
func TestRevertWithoutState(t *testing.T) {
	n := newNode(t)
	n.state = ""
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	before := tree(t, n.root)
	require.ErrorIs(t, i.Revert(t.Context()), errors.ErrUnsupported)
	require.ErrorIs(t, second(i.CheckRevert(t.Context())), errors.ErrUnsupported)
	require.Equal(t, before, tree(t, n.root))
}

// Several upgrades by several owners give back the original, byte for byte.
func TestCNI8_RevertGivesBackTheOriginal(t *testing.T) {
	n := newNode(t)
	write(t, n.plugin("cilium-cni"), "original, not executable", 0o640)
	write(t, n.confFile(), "original", 0o644)
	write(t, filepath.Join(n.conf, "10-other.conflist"), "other", 0o644)
	before := withoutTimes(t, n)
	i := n.install()
	for version, owner := range []string{"pod-a", "pod-b", "pod-b", "pod-c"} {
		n.source("cilium-cni", script("0.3.1")+string(make([]byte, 5000*version)))
		i.Config, i.Owner = cniinstall.Agent{Debug: version%2 == 0}, owner
		require.NoError(t, i.Apply(t.Context()))
		requireConverged(t, i, n.root)
	}
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"restore " + n.confFile(), "remove " + n.plugin("loopback"), "restore " + n.plugin("cilium-cni")}, changes)
	n.source("cilium-cni", script("0.3.1"))
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, withoutTimes(t, n))
	require.NoDirExists(t, n.state)
}

// withoutTimes lists the node's files, but for the source.
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

// The configuration goes first, also if a plugin was recorded after it.
func TestCNI8_ConfigurationFirst(t *testing.T) {
	n := newNode(t)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	n.source("another", script("1.0.0"))
	require.NoError(t, i.Apply(t.Context()))
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"remove " + n.confFile(),
		"remove " + n.plugin("another"), "remove " + n.plugin("loopback"), "remove " + n.plugin("cilium-cni"),
		"remove directory " + n.conf, "remove directory " + filepath.Dir(n.conf), "remove directory " + n.root + "/etc",
		"remove directory " + n.bin, "remove directory " + filepath.Dir(n.bin), "remove directory " + n.root + "/opt",
	}, changes)
}

// What was changed since stays, is reported, and is not asked about again; a
// directory that holds it is ours still, and goes when it is empty.
func TestCNI8_ChangedSinceStays(t *testing.T) {
	n := newNode(t)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	write(t, n.confFile(), "edited", 0o600)
	write(t, filepath.Join(n.bin, "foreign"), "foreign", 0o755)
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove " + n.plugin("loopback"), "remove " + n.plugin("cilium-cni")}, changes)

	err = i.Revert(t.Context())
	require.ErrorContains(t, err, n.confFile()+" is no longer as it was left")
	requireContent(t, n.confFile(), "edited", 0o600)
	requireContent(t, n.plugin("foreign"), "foreign", 0o755)
	require.NoFileExists(t, n.plugin("cilium-cni"))

	for range 2 {
		err = i.Revert(t.Context())
		require.NotContains(t, err.Error(), "no longer as it was left")
		require.Equal(t, "revert the CNI installation: undo "+n.conf+": it holds 05-cilium.conflist, so it stays\n"+
			"undo "+n.bin+": it holds foreign, so it stays", err.Error())
	}
	require.NoError(t, os.Remove(n.confFile()))
	require.NoError(t, os.Remove(filepath.Join(n.bin, "foreign")))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.root+"/opt")
	require.NoDirExists(t, n.root+"/etc")
	require.NoDirExists(t, n.state)
}

// A pod's late uninstall, after the next pod has installed: the same files, or
// newer ones.
func TestCNI8_LateUninstallOfAnOlderOwner(t *testing.T) {
	for name, upgrade := range map[string]bool{"same version": false, "newer version": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			older, newer := n.install(), n.install()
			older.Owner, newer.Owner = "pod-1", "pod-2"
			require.NoError(t, older.Apply(t.Context()))
			if upgrade {
				n.source("cilium-cni", script("0.3.1"))
			} else {
				changes, err := newer.Check(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{`take over the CNI installation from owner "pod-1"`}, changes)
			}
			require.NoError(t, newer.Apply(t.Context()))
			requireConverged(t, newer, n.root)

			before := tree(t, n.root)
			for _, err := range []error{older.Revert(t.Context()), second(older.CheckRevert(t.Context()))} {
				require.ErrorIs(t, err, cniinstall.ErrNotOwner)
				require.ErrorIs(t, err, errors.ErrUnsupported)
				require.ErrorContains(t, err, "last was pod-2 (generation 2), this is pod-1")
			}
			require.Equal(t, before, tree(t, n.root))
			require.NoError(t, newer.Revert(t.Context()))
			require.NoDirExists(t, n.root+"/opt")
			require.NoDirExists(t, n.root+"/etc")
		})
	}
}

// A record that cannot be read stops everything.
func TestCorruptRecord(t *testing.T) {
	n := newNode(t)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	write(t, filepath.Join(n.state, "cni.json"), `{"schema":99}`, 0o600)
	require.NoError(t, os.Remove(n.confFile()))
	before := tree(t, n.root)
	for _, err := range []error{
		i.Apply(t.Context()), i.Revert(t.Context()), second(i.Check(t.Context())), second(i.CheckRevert(t.Context())),
	} {
		require.ErrorContains(t, err, n.state+"/cni.json")
	}
	require.Equal(t, before, tree(t, n.root))
}

// An entry of a kind that this version does not know is kept.
func TestUnknownKindIsKept(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.Mkdir(n.state, 0o700))
	raw := `{"schema":1,"entries":[{"kind":"later","object":"x","before":{},"after":{},"done":true}]}`
	write(t, filepath.Join(n.state, "cni.json"), raw, 0o600)
	before := tree(t, n.root)
	require.ErrorContains(t, n.install().Revert(t.Context()), `x: unknown kind "later" of entry`)
	require.Equal(t, before, tree(t, n.root))
}

// A run that was killed before it recorded anything leaves an empty book.
func TestEmptyBookGoes(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.Mkdir(n.state, durable.StateDirMode)) // as a record makes it
	write(t, filepath.Join(n.state, "cni.json"), `{"schema":1,"owner":"host","generation":1,"entries":null}`, 0o600)
	changes, err := n.install().CheckRevert(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
	require.NoError(t, n.install().Revert(t.Context()))
	require.NoDirExists(t, n.state)
}
