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
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// auto is the agent's installation for a runtime, wherever that looks.
func (n node) auto(r cniinstall.Runtime) cniinstall.Install {
	n.t.Helper()
	i := n.install()
	i.BinDir, i.ConfDir = "", ""
	i, err := i.For(n.t.Context(), r)
	require.NoError(n.t, err)
	return i
}

// at is a runtime that looks in folders below a place on the node.
func (n node) at(place string) cniinstall.Runtime {
	return cniinstall.Runtime{PluginDirs: []string{filepath.Join(n.root, place, "bin")}, ConfDir: filepath.Join(n.root, place, "net.d")}
}

func TestForWhereTheRuntimeLooks(t *testing.T) {
	n := newNode(t)
	r := n.at("k3s")
	r.PluginDirs = append(r.PluginDirs, "/usr/lib/cni")
	i := n.auto(r)
	require.Equal(t, r.PluginDirs[0], i.BinDir)
	require.Equal(t, r.ConfDir, i.ConfDir)
	require.Equal(t, []string{"/usr/lib/cni"}, i.SearchDirs)
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.FileExists(t, filepath.Join(r.ConfDir, i.ConfName))
	advice, err := i.Advise(t.Context())
	require.NoError(t, err)
	require.Empty(t, advice)
}

func TestForGivenFoldersStay(t *testing.T) {
	n := newNode(t)
	r := n.at("k3s")
	r.Remedy = "give others"
	i, err := n.install().For(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []string{n.bin, n.conf}, []string{i.BinDir, i.ConfDir})
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	advice, err := i.Advise(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		`the container runtime looks for plugins in ["` + r.PluginDirs[0] + `"], not in "` + n.bin + `" (give others)`,
		`the container runtime reads configurations in "` + r.ConfDir + `", not in "` + n.conf + `" (give others)`,
	}, advice)

	require.NoError(t, os.Symlink(filepath.Join(n.root, "etc/cni"), filepath.Join(n.root, "link")))
	linked := cniinstall.Runtime{PluginDirs: []string{n.bin}, ConfDir: filepath.Join(n.root, "link/net.d")}
	i, err = n.install().For(t.Context(), linked)
	require.NoError(t, err)
	advice, err = i.Advise(t.Context())
	require.NoError(t, err)
	require.Empty(t, advice, "it is one folder")
}

func TestForARuntimeThatDoesNotSay(t *testing.T) {
	n := newNode(t)
	unknown := cniinstall.Runtime{Err: errors.New("nobody answers")}
	i := n.auto(unknown)
	require.Equal(t, []string{"/opt/cni/bin", "/etc/cni/net.d"}, []string{i.BinDir, i.ConfDir})
	i.Plugins, i.Config = nil, nil // those are the machine's
	advice, err := i.Advise(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"no container runtime says where it looks, so it is assumed to be in /opt/cni/bin and /etc/cni/net.d: nobody answers"}, advice)

	require.NoError(t, n.auto(n.at("k3s")).Apply(t.Context()))
	i = n.auto(unknown)
	require.Equal(t, n.at("k3s").ConfDir, i.ConfDir, "where it was installed")
	requireConverged(t, i, n.root)
}

// What the journal says is kept as long as the runtime looks there.
func TestForTheFolderInUseIsKept(t *testing.T) {
	n := newNode(t)
	first := n.at("first")
	require.NoError(t, n.auto(first).Apply(t.Context()))
	both := cniinstall.Runtime{PluginDirs: []string{n.bin, first.PluginDirs[0]}, ConfDir: first.ConfDir}
	i := n.auto(both)
	require.Equal(t, first.PluginDirs[0], i.BinDir)
	require.Equal(t, []string{n.bin}, i.SearchDirs)
	requireConverged(t, i, n.root)
}

// A move undoes the old place, and a revert after it the new one.
func TestForAMoveUndoesTheOldPlace(t *testing.T) {
	n := newNode(t)
	other := filepath.Join(n.root, "old/net.d/10-other.conflist")
	write(t, other, "other", 0o644)
	before := tree(t, n.root)
	i := n.auto(n.at("old"))
	i.Exclusive = true
	require.NoError(t, i.Apply(t.Context()))
	require.NoFileExists(t, other)
	for _, r := range []cniinstall.Runtime{
		n.at("new"),
		{PluginDirs: n.at("newer").PluginDirs, ConfDir: n.at("new").ConfDir},
		{PluginDirs: n.at("newer").PluginDirs, ConfDir: n.at("newest").ConfDir},
	} {
		i = n.auto(r)
		changes, err := i.Check(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, changes)
		require.NoError(t, i.Apply(t.Context()))
		requireConverged(t, i, n.root)
		require.FileExists(t, filepath.Join(r.PluginDirs[0], "cilium-cni"))
		require.FileExists(t, filepath.Join(r.ConfDir, i.ConfName))
		require.FileExists(t, other, "given back")
		plugins, err := filepath.Glob(filepath.Join(n.root, "*/bin/*"))
		require.NoError(t, err)
		require.Len(t, plugins, 2, "the others are gone: %q", plugins)
		confs, err := filepath.Glob(filepath.Join(n.root, "*/net.d/"+i.ConfName))
		require.NoError(t, err)
		require.Len(t, confs, 1)
	}
	require.NoError(t, i.Revert(t.Context()))
	require.Empty(t, journaltest.Entries(t, i.Journal))
	require.Equal(t, before, tree(t, n.root))
}

// What somebody has changed in the old place is theirs.
func TestForAMoveLeavesWhatSomebodyChanged(t *testing.T) {
	n := newNode(t)
	old := n.auto(n.at("old"))
	require.NoError(t, old.Apply(t.Context()))
	plugin := filepath.Join(old.BinDir, "loopback")
	require.NoError(t, os.WriteFile(plugin, []byte("theirs"), 0o755))
	i := n.auto(n.at("new"))
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, changes, "leave "+plugin+", which is no longer as it was left")
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	left, err := os.ReadFile(plugin)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(left))
	require.NoFileExists(t, filepath.Join(old.BinDir, "cilium-cni"))
}

// A configuration that somebody has changed keeps the plugins that it names.
func TestForAMoveKeepsWhatAChangedConfigurationNeeds(t *testing.T) {
	n := newNode(t)
	old := n.auto(n.at("old"))
	require.NoError(t, old.Apply(t.Context()))
	conf := filepath.Join(old.ConfDir, old.ConfName)
	require.NoError(t, os.WriteFile(conf, []byte(`{"cniVersion":"1.0.0","name":"x","plugins":[{"type":"cilium-cni","mine":1}]}`), 0o600))
	i := n.auto(n.at("new"))
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.FileExists(t, filepath.Join(old.BinDir, "cilium-cni"))
	require.FileExists(t, conf)
	require.NoError(t, os.Remove(conf))
	require.NoError(t, i.Apply(t.Context()))
	require.NoFileExists(t, filepath.Join(old.BinDir, "cilium-cni"))
}

func TestForNoFolderOfTheRuntimeCanBeUsed(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.BinDir = ""
	_, err := i.For(t.Context(), cniinstall.Runtime{PluginDirs: []string{"/usr/bin"}})
	require.EqualError(t, err, "choose CNI folders: no plugin can be installed where the container runtime looks: CNI folder /usr/bin is the system's: name one for CNI")
}
