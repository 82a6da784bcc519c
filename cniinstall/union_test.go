// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"errors"
	"io/fs"
	"os"
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

func TestUnionIsAFileSystem(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/b", []byte("b"), 0o644))
	u := cniinstall.Union(fstest.MapFS{"a": {Data: []byte("a")}}, os.DirFS(dir), fstest.MapFS{})
	require.NoError(t, fstest.TestFS(u, "a", "b"))
	_, err := fs.Stat(u, "c")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.ReadDir(cniinstall.Union(), ".")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.ReadDir(cniinstall.Union(fstest.MapFS{}, os.DirFS(dir+"/missing")), ".")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.Stat(cniinstall.Union(refusing{}, fstest.MapFS{"a": {}}), "a")
	require.ErrorIs(t, err, errRefused, "an unreadable plugin is an error")
}

var errRefused = errors.New("refused")

type refusing struct{}

func (refusing) Open(string) (fs.File, error) { return nil, errRefused }
