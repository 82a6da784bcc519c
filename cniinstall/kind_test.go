// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// A file is a list or a single plugin as the runtime reads it: the chain that is joined is the
// one that pods have, with ours behind it.
func TestCNI4_TheFilesNameDecidesWhatIsChained(t *testing.T) {
	const ours, other = `{"type":"cilium-cni"}`, `{"type":"other"}`
	for name, content := range map[string]string{
		"10-single.conf":         `{"cniVersion":"0.3.1","name":"n","type":"calico"}`,
		"10-ours-below.conf":     `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[` + ours + `]}`,
		"10-other-below.json":    `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[` + other + `]}`,
		"10-empty-below.conf":    `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[]}`,
		"10-no-array.conf":       `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":"none"}`,
		"10-case.conf":           `{"CNIVersion":"0.3.1","Name":"n","Type":"calico"}`,
		"10-twice.conf":          `{"cniVersion":"0.1.0","name":"x","Name":"n","CNIVersion":"0.3.1","type":"calico"}`,
		"10-list.conflist":       `{"cniVersion":"0.3.1","name":"n","plugins":[` + other + `,{"type":"portmap"}]}`,
		"10-type-above.conflist": `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[` + other + `]}`,
		"10-ours-in.conflist":    `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[` + other + `,` + ours + `]}`,
		"10-no-type.conf":        `{"cniVersion":"0.3.1","name":"n","plugins":[` + other + `]}`,
		"10-null-type.conf":      `{"cniVersion":"0.3.1","name":"n","type":null,"plugins":[` + other + `]}`,
		"10-plain.conflist":      `{"cniVersion":"0.3.1","name":"n","type":"calico"}`,
		"10-empty.conflist":      `{"cniVersion":"0.3.1","name":"n","plugins":[]}`,
		"10-empty-type.conflist": `{"cniVersion":"0.3.1","name":"n","type":"calico","plugins":[]}`,
		"10-upper.conflist":      `{"cniVersion":"0.3.1","name":"n","Plugins":[` + other + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, name), content, 0o644)
			got, err := chainedOf(cniinstall.Chained{Network: "n"}).Render(t.Context(), dir)
			want, reason := loadedList(filepath.Join(dir, name))
			if reason != nil {
				require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
				require.ErrorContains(t, err, name, "libcni says %v", reason)
				return
			}
			require.NoError(t, err)
			chain, err := libcni.NetworkConfFromBytes(got)
			require.NoError(t, err)
			require.Equal(t, []string{want.Name, want.CNIVersion}, []string{chain.Name, chain.CNIVersion})
			types := []string{}
			for _, plugin := range plugins(want) {
				if plugin != "cilium-cni" {
					types = append(types, plugin)
				}
			}
			require.Equal(t, append(types, "cilium-cni"), plugins(chain))
		})
	}
}

// Without its file's name, a configuration that is both can be read wrongly.
func TestCNI4_WhatOnlyAFilesNameTellsIsNotGuessed(t *testing.T) {
	both := []byte(`{"name":"n","type":"calico","plugins":[{"type":"cilium-cni"}]}`)
	_, err := cniinstall.Chain(both, []byte(`{"type":"cilium-cni"}`))
	require.ErrorIs(t, err, cniinstall.ErrInvalid)
	err = cniinstall.Validate(t.Context(), both, t.TempDir())
	require.ErrorIs(t, err, cniinstall.ErrInvalid)
	require.ErrorContains(t, err, `it has "type" and "plugins": only its file's name tells which counts`)
}

// A plugin's error is about the plugin that runs, not about what is below it.
func TestCNI4_AVersionIsThatOfThePluginThatRuns(t *testing.T) {
	n := newNode(t)
	n.source("cilium-cni", script("0.1.0"))
	i := n.install()
	i.ConfName, i.Config = "10-x.conf", cniinstall.Whole(`{"cniVersion":"1.0.0","name":"n","type":"cilium-cni","plugins":[{"type":"x"}]}`)
	err := i.Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrInvalid)
	require.ErrorContains(t, err, "10-x.conf: plugin cilium-cni does not speak")
}

// Loopback gives pods no network: a chain is not built on it, under any name, and is worth
// waiting for.
func TestCNI4_LoopbackAloneIsNoTarget(t *testing.T) {
	for target, content := range map[string]string{
		"*":  `{"cniVersion":"0.3.1","name":"lo","type":"loopback"}`,
		"lo": `{"cniVersion":"0.3.1","name":"lo","type":"loopback"}`,
	} {
		n := newNode(t)
		write(t, n.other("200-loopback.conf"), content, 0o644)
		write(t, n.other("99-loopback.conflist"), `{"cniVersion":"1.0.0","name":"lo","plugins":[{"type":"loopback"},{"type":"cilium-cni"}]}`, 0o644)
		write(t, n.other("98-loopback.conflist.cilium_bak"), `{"cniVersion":"1.0.0","name":"lo","plugins":[{"type":"loopback"}]}`, 0o644)
		i := n.install()
		i.Config = chainedOf(cniinstall.Chained{Network: target})
		before := tree(t, n.root)
		require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrTargetMissing)
		seen, err := i.Missing(t.Context())
		require.NoError(t, err)
		require.Contains(t, seen, "loopback alone does not count", "a gate waits")
		require.Equal(t, before, tree(t, n.root))

		write(t, n.other("30-real.conflist"), `{"cniVersion":"0.3.1","name":"lo","plugins":[{"type":"loopback"},{"type":"cloud"}]}`, 0o644)
		write(t, n.plugin("cloud"), script("0.3.1"), 0o755)
		write(t, n.plugin("loopback"), script("0.3.1"), 0o755)
		require.NoError(t, i.Apply(t.Context()))
		list, err := libcni.NetworkConfFromFile(n.confFile())
		require.NoError(t, err)
		require.Equal(t, []string{"loopback", "cloud", "cilium-cni"}, plugins(list))
	}
}
