// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// listing is an installation that lists its plugins; an earlier one also installed portmap and
// bridge.
func listing(t *testing.T, names ...string) (node, recorded) {
	n, i := shared(t)
	n.source("bridge", script("1.0.0"))
	i.Names = []string{"cilium-cni", "loopback", "portmap", "bridge"}
	require.NoError(t, i.Apply(t.Context()))
	i.Names = names
	return n, i
}

// stays applies, and lists why objects stay that are no longer wanted. That is no failure.
func stays(t *testing.T, i recorded) (why []string) {
	t.Helper()
	done, err := i.apply(t.Context())
	require.NoError(t, err)
	for _, u := range done.Undone {
		if u.Err != nil {
			why = append(why, u.Err.Error())
		}
	}
	return why
}

// An empty or optional list removes nothing.
func TestCNI10_AnEmptyOrOptionalListRemovesNothing(t *testing.T) {
	for name, change := range map[string]func(n node, i *recorded){
		"no list":               func(n node, i *recorded) { i.Names = nil },
		"an empty one":          func(n node, i *recorded) { i.Names = []string{} },
		"an optional one":       func(n node, i *recorded) { i.Names, i.Optional = nil, []string{"portmap"} },
		"optional, and missing": func(n node, i *recorded) { i.Optional = []string{"bridge"} },
		"no plugins at all":     func(n node, i *recorded) { i.Plugins = nil },
	} {
		t.Run(name, func(t *testing.T) {
			n, i := listing(t, "cilium-cni", "loopback", "portmap")
			require.NoError(t, os.Remove(n.src+"/bridge"))
			change(n, &i)
			requireChanges(t, i)
			require.NoError(t, i.Apply(t.Context()))
			require.FileExists(t, n.plugin("bridge"))
		})
	}
}

// A plugin that a configuration on the node names stays, with advice, until that configuration
// is gone.
func TestCNI10_WhatIsNoLongerListedAndNeededStays(t *testing.T) {
	n, i := listing(t, "cilium-cni", "loopback")
	write(t, n.other("10-other.conflist"), portmapConf, 0o644)
	requireChanges(t, i, "remove file "+n.plugin("bridge"))
	requireApplied(t, i, n.root)
	require.FileExists(t, n.plugin("portmap"))
	require.NoFileExists(t, n.plugin("bridge"))
	require.Contains(t, stays(t, i), n.plugin("portmap")+" is still needed: "+n.other("10-other.conflist")+" names it")

	require.NoError(t, os.Remove(n.other("10-other.conflist")))
	require.NoError(t, i.Apply(t.Context()))
	require.NoFileExists(t, n.plugin("portmap"))
	require.Empty(t, stays(t, i))

	i.Names = []string{"cilium-cni"}
	i.Optional = nil
	require.NoError(t, i.Apply(t.Context()), "loopback is there")
	require.FileExists(t, n.plugin("loopback"), "there is a configuration, ours")
}

// The configuration was renamed since: the older file, which sorts first, is removed once the
// newer one exists, and the original in its place is restored.
func TestCNI10_AConfigurationUnderItsFormerNameGoes(t *testing.T) {
	for name, tt := range map[string]struct{ exclusive, original bool }{
		"": {}, "exclusive": {exclusive: true}, "over another's": {original: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := shared(t)
			if i.Exclusive = tt.exclusive; tt.original {
				write(t, n.confFile(), awsConf, 0o600)
			}
			require.NoError(t, i.Apply(t.Context()))
			old := n.confFile()
			i.ConfName = "90-cilium.conflist"
			changes, err := i.Check(t.Context())
			require.NoError(t, err)
			gone := "remove file " + old
			if tt.original {
				gone = "replace file " + old + ", as another program left it"
			}
			require.Equal(t, []string{"write file " + n.other("90-cilium.conflist"), gone}, changes)
			requireApplied(t, i, n.root)
			requireContent(t, n.other("90-cilium.conflist"), agentConf, 0o600)
			if tt.original {
				requireContent(t, old, awsConf, 0o600)
			} else {
				require.NoFileExists(t, old)
			}
			require.NoError(t, i.Revert(t.Context()))
			require.NoFileExists(t, n.plugin("cilium-cni"))
			if !tt.original { // otherwise loopback stays
				require.NoDirExists(t, n.bin)
				require.Len(t, tree(t, n.conf), 1, "it is empty")
			}
		})
	}
}
