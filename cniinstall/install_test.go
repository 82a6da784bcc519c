// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

const agentConf = `{
  "cniVersion": "0.3.1",
  "name": "cilium",
  "plugins": [
    {
      "type": "cilium-cni",
      "enable-debug": false,
      "log-file": "/var/run/cilium/cilium-cni.log"
    }
  ]
}
`

func TestCNI1_CNI9_FreshNode(t *testing.T) {
	n := newNode(t)
	i := n.install()
	before := tree(t, n.root)

	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"make directory " + n.root + "/opt",
		"make directory " + n.root + "/opt/cni",
		"make directory " + n.bin,
		"make directory " + n.root + "/etc",
		"make directory " + n.root + "/etc/cni",
		"make directory " + n.conf,
		"write " + n.plugin("cilium-cni"),
		"write " + n.plugin("loopback"),
		"write " + n.confFile(),
	}, changes)
	require.Equal(t, before, tree(t, n.root), "Check changes nothing")

	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
	requireContent(t, n.plugin("loopback"), script("1.0.0"), 0o755)
	requireContent(t, n.confFile(), agentConf, 0o600)
	for _, dir := range []string{n.bin, n.conf} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o755, info.Mode())
	}
	requireConverged(t, i, n.root)

	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root), "as before, without the folders that were made")
}

func TestZeroInstallAsksForNothing(t *testing.T) {
	changes, err := cniinstall.Install{}.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
}

func TestCNI1_WritesOnlyWhatDiffers(t *testing.T) {
	n := newNode(t)
	write(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
	write(t, n.plugin("foreign"), "other", 0o700)
	before := tree(t, n.bin)
	i := n.install()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.NotContains(t, changes, "write "+n.plugin("cilium-cni"))
	require.NoError(t, i.Apply(t.Context()))
	after := tree(t, n.bin)
	for _, same := range []string{n.plugin("cilium-cni"), n.plugin("foreign"), filepath.Clean(n.bin)} {
		require.Equal(t, before[same], after[same])
	}
}
