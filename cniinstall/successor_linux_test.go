// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
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
			requireConverged(t, i, n.root)
			if !c.stays {
				require.NoError(t, i.Revert(t.Context()))
				require.NoFileExists(t, n.plugin(plugin))
				return
			}
			_, err := i.CheckRevert(t.Context())
			require.ErrorIs(t, err, ledger.ErrChanged)
			require.ErrorContains(t, i.Revert(t.Context()), n.plugin(plugin)+" is another file with the same content, such as a package's, so it is kept")
			requireContent(t, n.plugin(plugin), content, 0o755)
			require.NoFileExists(t, n.confFile())
		})
	}
}

// A plugin that another program replaced is put back. Even if the step is killed right after
// that, the file counts as the step's, not a package's.
func TestCNI8_APluginThatIsPutBackByAKilledRunIsOurs(t *testing.T) {
	n, i := installed(t)
	plugin := n.plugin("cilium-cni")
	running, err := os.Open(plugin) // so that no other file gets its inode
	require.NoError(t, err)
	defer running.Close()
	write(t, plugin+".new", "an older release's", 0o755)
	require.NoError(t, os.Rename(plugin+".new", plugin))
	require.NoError(t, i.Apply(t.Context()))
	records := journaltest.Records(t, n.state)
	for bytes.Contains(records[len(records)-1], []byte(`"done":true`)) { // drop the last run's completion
		records = records[:len(records)-1]
	}
	journaltest.Write(t, journaltest.Path(t, n.state), records...)

	i = n.install()
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.NoError(t, i.Revert(t.Context()))
	require.NoFileExists(t, plugin)
}
