// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// counted is a source of plugins that counts the bytes that are read from it.
type counted struct {
	fs.FS
	read *int
}

func (c counted) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if _, isDir := f.(fs.ReadDirFile); err != nil || isDir {
		return f, err
	}
	return countedFile{f, c.read}, nil
}

type countedFile struct {
	fs.File
	read *int
}

func (c countedFile) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	*c.read += n
	return n, err
}

// The source of a large plugin is read once when it is installed, and once when it is compared.
// One byte that differs is noticed.
func TestCNI1_ALargePluginIsReadOnce(t *testing.T) {
	n, read, size := newNode(t), 0, 5<<20
	content := strings.Repeat("x", size)
	i := n.onePlugin()
	i.Plugins = counted{fstest.MapFS{"acme-cni": {Data: []byte(content)}}, &read}
	costs := func(times int, what string) {
		t.Helper()
		read = 0
		require.NoError(t, i.Apply(t.Context()))
		require.Equal(t, times*size, read, what)
		requireContent(t, n.plugin("acme-cni"), content, 0o755)
	}
	costs(1, "it is missing")
	costs(1, "it is equal")
	require.NoError(t, os.WriteFile(n.plugin("acme-cni"), []byte("short"), 0o755))
	costs(1, "it has another size")
	f, err := os.OpenFile(n.plugin("acme-cni"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Seek(-1, io.SeekEnd)
	require.NoError(t, err)
	_, err = f.Write([]byte("y"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	costs(2, "it differs in its last byte")
}

// A configuration that was rendered from another CNI's is never adopted, nor is a reference
// plugin: they may be others'. What is adopted goes with the agent.
func TestPLAN15_WhatMayBeOthersIsNotAdopted(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-aws.conflist"), awsConf, 0o644)
	for _, plugin := range []string{"aws-cni", "portmap"} {
		write(t, n.plugin(plugin), script("0.4.0"), 0o755)
	}
	n.source("cilium-cni", script("0.4.0"))
	n.source("bandwidth", script("0.4.0"))
	i := n.install()
	i.Config = chainedOf(cniinstall.Chained{})
	i.Book = nil
	require.NoError(t, i.Apply(t.Context())) // an installer that keeps no record
	for _, installed := range []string{n.confFile(), n.plugin("cilium-cni"), n.plugin("bandwidth")} {
		require.FileExists(t, installed)
	}
	l := &ledger.Ledger{Dir: n.state, Agent: "agent", NoOwner: true, Adopt: true, Kinds: cniinstall.Uninstall{ConfDir: n.conf}.Kinds()}
	book, err := l.Open(t.Context())
	require.NoError(t, err)
	defer book.Close()
	i.Book = book
	done, err := i.apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{n.plugin("cilium-cni")}, done.Adopted)
	require.NoError(t, i.Revert(t.Context()))
	require.FileExists(t, n.confFile())
	require.FileExists(t, n.plugin("cilium-cni"), "the configuration that stays names it")
	require.FileExists(t, n.plugin("bandwidth"))
	require.NoError(t, os.Remove(n.confFile()))
	require.NoError(t, i.Revert(t.Context()))
	require.NoFileExists(t, n.plugin("cilium-cni"))
	require.FileExists(t, n.plugin("bandwidth"))
}
