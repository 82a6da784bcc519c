// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

func TestPluginFSIsAFileSystem(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(first+"/a", []byte("first"), 0o644))
	require.NoError(t, os.WriteFile(second+"/a", []byte("second"), 0o644))
	require.NoError(t, os.WriteFile(second+"/b", []byte("b"), 0o644))
	p, err := cniinstall.OpenPlugins(first, second)
	require.NoError(t, err)
	require.Equal(t, first+", "+second, p.String())
	content, err := fs.ReadFile(p, "a")
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
	_, err = p.Stat("c")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, p.Close())
	_, err = fs.ReadFile(p, "a")
	require.ErrorIs(t, err, fs.ErrClosed)

	one, err := cniinstall.OpenPlugins(second)
	require.NoError(t, err)
	defer one.Close()
	require.NoError(t, fstest.TestFS(one, "a", "b"))

	for _, name := range []string{"a", "."} {
		_, err = new(cniinstall.PluginFS).Open(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	_, err = cniinstall.Union(one, os.DirFS(second+"/missing")).Open(".")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = cniinstall.OpenPlugins(first, second+"/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, second+"/missing")
	require.ErrorContains(t, err, "of this container's image, not of the host")
}

// A directory on disk may be an unpacked archive: what is not executable there is no plugin,
// unless it is asked for by name, and the report says what is left out. A source of another
// kind, such as an embedded folder, has no executable bits and is taken as it is.
func TestCNI12_FilesWithoutAnXBitAreLeftOutAndNamed(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(n.root, "archive")
	for name, mode := range map[string]fs.FileMode{"tuning": 0o755, "vrf": 0o500, "owned": 0o410, "LICENSE": 0o644, "README.md": 0o444, "10-x.conf": 0o644, ".x": 0o644} {
		write(t, filepath.Join(dir, name), script("1.0.0"), mode)
	}
	require.NoError(t, os.Symlink("README.md", filepath.Join(dir, "linked")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "doc"), 0o755))
	disk, err := cniinstall.OpenPlugins(dir)
	require.NoError(t, err)
	defer disk.Close()
	i := n.install()
	i.Config, i.Plugins, i.Optional = nil, disk, []string{"loopback"}

	left := "left out of the CNI plugins to install, since they are not executable: LICENSE, README.md, linked (in " + dir + ")"
	require.Contains(t, n.advice(i), left, "before")
	require.NoError(t, i.Apply(t.Context()))
	require.Equal(t, []string{"owned", "tuning", "vrf"}, namesIn(t, n.bin))
	require.Contains(t, n.advice(i), left)
	requireConverged(t, i, n.root)

	i.Names = []string{"LICENSE"}
	require.NoError(t, i.Apply(t.Context()), "it is asked for")
	requireContent(t, n.plugin("LICENSE"), script("1.0.0"), 0o755)
	require.NotContains(t, strings.Join(n.advice(i), "\n"), "left out")

	whole := n.install()
	whole.Config, whole.Plugins, whole.Optional, whole.BinDir = nil, os.DirFS(dir), i.Optional, filepath.Join(n.root, "whole")
	require.NoError(t, whole.Apply(t.Context()))
	require.Equal(t, []string{"LICENSE", "README.md", "linked", "owned", "tuning", "vrf"}, namesIn(t, whole.BinDir))
	require.NotContains(t, strings.Join(n.advice(whole), "\n"), "left out")
}

// A directory that has lost its x bits, in a copy for example, is no empty one.
func TestCNI12_ADirectoryWithoutAnyXBitIsAnError(t *testing.T) {
	n := newNode(t)
	disk, err := cniinstall.OpenPlugins(n.src)
	require.NoError(t, err)
	defer disk.Close()
	i := n.install()
	i.Plugins = disk
	_, err = i.Check(t.Context())
	require.ErrorContains(t, err, "no file in it is executable")
}

// namesIn lists a folder.
func namesIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

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
