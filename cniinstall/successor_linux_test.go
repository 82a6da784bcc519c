// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A package installs the same plugin, byte for byte: the plugin is then the package's, and
// stays. A plugin that is only touched or copied remains ours.
func TestCNI8_AnEqualPluginOfAPackageStays(t *testing.T) {
	const plugin = "cilium-cni"
	content := script("0.3.1", "0.4.0", "1.0.0")
	old := time.Now().Add(-24 * time.Hour)
	replace := func(t *testing.T, n node, modified time.Time) {
		next := n.plugin(".next")
		write(t, next, content, 0o755)
		require.NoError(t, os.Chtimes(next, modified, modified))
		require.NoError(t, os.Rename(next, n.plugin(plugin)))
	}
	for name, c := range map[string]struct {
		change func(*testing.T, node)
		stays  bool
	}{
		"package": {func(t *testing.T, n node) { replace(t, n, old) }, true},
		"touched": {func(t *testing.T, n node) { require.NoError(t, os.Chtimes(n.plugin(plugin), old, old)) }, false},
		"copied with its times": {func(t *testing.T, n node) {
			info, err := os.Lstat(n.plugin(plugin))
			require.NoError(t, err)
			replace(t, n, info.ModTime())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := installed(t)
			c.change(t, n)
			changes, err := i.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, changes)
			require.NoError(t, i.Apply(t.Context()))
			if !c.stays {
				require.NoError(t, i.Revert(t.Context()))
				require.NoFileExists(t, n.plugin(plugin))
				return
			}
			require.ErrorContains(t, i.Revert(t.Context()), n.bin+" is no longer as it was left: it holds "+plugin)
			requireContent(t, n.plugin(plugin), content, 0o755)
			require.NoFileExists(t, n.confFile())
		})
	}
}
