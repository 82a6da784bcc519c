// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/cniinstall"
)

// background is for work that outlives a test.
var background = context.Background()

// node is the set of a node's directories, below a temporary one.
type node struct {
	t                           *testing.T
	root, src, bin, conf, state string
}

// newNode makes a source with plugins cilium-cni and loopback; the node's own directories do not
// exist yet.
func newNode(t *testing.T) node { return newNodeIn(t, t.TempDir()) }

func newNodeIn(t *testing.T, root string) node {
	n := node{t: t, root: root, src: filepath.Join(root, "src"), bin: filepath.Join(root, "opt/cni/bin"),
		conf: filepath.Join(root, "etc/cni/net.d"), state: filepath.Join(root, "state")}
	require.NoError(t, os.MkdirAll(n.src, 0o755))
	n.source("cilium-cni", script("0.3.1", "0.4.0", "1.0.0"))
	n.source("loopback", script("1.0.0"))
	return n
}

// install is the agent's installation on the node.
func (n node) install() recorded {
	root, err := os.OpenRoot(n.src)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { root.Close() })
	i := recorded{Install: cniinstall.Cilium("")}
	i.Plugins, i.BinDir, i.ConfDir = root.FS(), n.bin, n.conf
	if n.state != "" {
		i.Book = n.book(cniinstall.Uninstall{})
	}
	return i
}

// agentOf fills the fields that a leaves empty with Cilium's values.
func agentOf(a cniinstall.Agent) cniinstall.Agent {
	c := cniinstall.CiliumAgent(a.Mode)
	a.Network, a.Plugin, a.LogFile = cmp.Or(a.Network, c.Network), cmp.Or(a.Plugin, c.Plugin), cmp.Or(a.LogFile, c.LogFile)
	return a
}

// chainedOf fills the fields that c's agent leaves empty with Cilium's values for a chain.
func chainedOf(c cniinstall.Chained) cniinstall.Chained {
	network := c.Agent.Network
	c.Agent = agentOf(c.Agent)
	c.Agent.Network = network
	return c
}

// onePlugin is an installation of a single plugin that nothing else needs.
func (n node) onePlugin() recorded {
	i := n.install()
	i.Config, i.Plugins, i.Optional = nil, fstest.MapFS{"acme-cni": {Data: []byte(script("1.0.0"))}}, []string{"loopback"}
	return i
}

// seeing is the installation for a runtime that also looks for plugins in another directory.
func (n node) seeing(i cniinstall.Install, dir string) cniinstall.Install {
	n.t.Helper()
	i, err := forRuntime(n.t.Context(), i, cri.CNI{PluginDirs: []string{n.bin, dir}}, nil)
	require.NoError(n.t, err)
	return i
}

func (n node) source(name, content string) {
	n.t.Helper()
	write(n.t, filepath.Join(n.src, name), content, 0o644) // no executable bit, as in an embedded directory
}

// ownLoopback installs the node's own plugin loopback: ours would stay as long as another CNI's
// configuration does.
func (n node) ownLoopback() { write(n.t, n.plugin("loopback"), script("1.0.0"), 0o755) }

func (n node) confFile() string          { return filepath.Join(n.conf, "05-cilium.conflist") }
func (n node) plugin(name string) string { return filepath.Join(n.bin, name) }

// script is a plugin that answers VERSION and fails every other command.
func script(versions ...string) string {
	return fmt.Sprintf(`#!/bin/sh
[ "$CNI_COMMAND" = VERSION ] || exit 3
echo '{"cniVersion":"1.0.0","supportedVersions":["%s"]}'
`, strings.Join(versions, `","`))
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode))
}

// entry is tree's description of a file.
func entry(info fs.FileInfo, content string) string {
	if len(content) > 500 { // keeps failure output short
		content = fmt.Sprintf("%d bytes, SHA-256 %x", len(content), sha256.Sum256([]byte(content)))
	}
	return fmt.Sprintf("%v %v %q", info.Mode(), info.ModTime().UnixNano(), content)
}

// tree describes everything below dir: type, mode, modification time and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			found[path] = info.Mode().String()
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			found[path] = "-> " + to
			return err
		case d.Type().IsRegular():
			raw, err := os.ReadFile(path)
			found[path] = entry(info, string(raw))
			return err
		default:
			found[path] = info.Mode().String()
		}
		return nil
	}))
	return found
}

// requireContent checks content and mode of a file.
func requireContent(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, content == string(raw), "%s holds %.300q", path, raw)
	require.Equal(t, mode, info.Mode(), path)
}

// installed is a node with the agent's installation.
func installed(t *testing.T) (node, recorded) {
	t.Helper()
	n := newNode(t)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	return n, i
}

// requireApplied applies, and checks that nothing remains to be done.
func requireApplied(t *testing.T, i recorded, dir string) {
	t.Helper()
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, dir)
}

// requireUndone undoes, and checks that the node is as before.
func requireUndone(t *testing.T, i recorded, n node, before map[string]string) {
	t.Helper()
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

// requireConverged checks that Check finds no change and that another Apply writes nothing.
func requireConverged(t *testing.T, i recorded, dir string) {
	t.Helper()
	changes, err := i.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, changes)
	before := tree(t, dir)
	require.NoError(t, i.Apply(context.Background()))
	require.Equal(t, before, tree(t, dir))
	requireNoTemp(t, dir)
}

func requireNoTemp(t *testing.T, dir string) {
	t.Helper()
	for path := range tree(t, dir) {
		require.NotContains(t, filepath.Base(path), ".slipway-", "a temporary file is left")
	}
}

// requireChanges checks what Check lists.
func requireChanges(t *testing.T, i recorded, want ...string) {
	t.Helper()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, append([]string(nil), want...), append([]string(nil), changes...))
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}
