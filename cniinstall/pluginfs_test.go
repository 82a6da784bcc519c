// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// opened opens directories of plugins until the test ends.
func opened(t *testing.T, dirs ...string) fs.FS {
	t.Helper()
	plugins, closeAll, err := cniinstall.OpenPlugins(dirs...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll()) })
	return plugins
}

func TestCNI1_PluginsOfSeveralDirectories(t *testing.T) {
	n := newNode(t)
	second := filepath.Join(n.root, "second")
	for name, content := range map[string]string{"cilium-cni": "another", "loopback": "another", "tuning": script("1.0.0"), ".hidden": "x"} {
		write(t, filepath.Join(second, name), content, 0o755)
	}
	for _, name := range []string{"cilium-cni", "loopback"} {
		require.NoError(t, os.Chmod(filepath.Join(n.src, name), 0o755))
	}
	i := n.install()
	i.Plugins = opened(t, n.src, second)
	require.Equal(t, n.src+", "+second, fmt.Sprint(i.Plugins))
	require.NoError(t, i.Apply(t.Context()))
	require.Equal(t, []string{"cilium-cni", "loopback", "tuning"}, namesIn(t, n.bin))
	requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
	requireConverged(t, i, n.root)

	require.NoError(t, fstest.TestFS(opened(t, n.src), "cilium-cni", "loopback"))
	_, _, err := cniinstall.OpenPlugins(n.src, second+"/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, second+"/missing")
	require.ErrorContains(t, err, "of this container's image, not of the host")
}

// A directory on disk may be an unpacked archive: what is not executable there is no plugin,
// unless it is asked for by name, and the report says what is left out. A source of another
// kind, such as an embedded directory, has no executable bits and is taken as it is.
func TestCNI12_FilesWithoutAnXBitAreLeftOutAndNamed(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(n.root, "archive")
	for name, mode := range map[string]fs.FileMode{"tuning": 0o755, "vrf": 0o500, "owned": 0o410, "LICENSE": 0o644, "README.md": 0o444, "10-x.conf": 0o644, ".x": 0o644} {
		write(t, filepath.Join(dir, name), script("1.0.0"), mode)
	}
	require.NoError(t, os.Symlink("README.md", filepath.Join(dir, "linked")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "doc"), 0o755))
	i := n.install()
	i.Config, i.Plugins, i.Optional = nil, opened(t, dir), []string{"loopback"}

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
	i := n.install()
	i.Plugins = opened(t, n.src)
	_, err := i.Check(t.Context())
	require.ErrorContains(t, err, "no file in it is executable")
}

// namesIn lists a directory.
func namesIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
