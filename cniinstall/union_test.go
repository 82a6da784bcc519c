// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

func TestCNI1_PluginsOfSeveralFolders(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.Plugins = cniinstall.Union(
		fstest.MapFS{"cilium-cni": {Data: []byte(script("1.0.0", "0.3.1"))}, ".hidden": {}},
		fstest.MapFS{"cilium-cni": {Data: []byte("another")}, "loopback": {Data: []byte(script("1.0.0"))}})
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("cilium-cni"), script("1.0.0", "0.3.1"), 0o755)
	requireContent(t, n.plugin("loopback"), script("1.0.0"), 0o755)
	require.NoFileExists(t, n.plugin(".hidden"))
	requireConverged(t, i, n.root)
}
