// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
)

func TestCNI3_SEC5_SEC6_AWholeConfigurationIsReadFromABoundedFile(t *testing.T) {
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "conf"), filepath.Join(dir, "fifo")
	require.NoError(t, os.WriteFile(path, []byte("as  it is"), 0o600))
	whole, err := cniinstall.ReadWhole(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, cniinstall.Whole("as  it is"), whole)

	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	_, err = cniinstall.ReadWhole(t.Context(), fifo)
	require.ErrorContains(t, err, fifo+" is a FIFO, not a regular file")
	require.NoError(t, os.Truncate(path, 1<<20+1))
	_, err = cniinstall.ReadWhole(t.Context(), path)
	require.ErrorContains(t, err, path+" is larger than 1048576 bytes")
	_, err = cniinstall.ReadWhole(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestSEC5_AFIFOAmongThePluginsIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "p"), 0o600))
	plugins := opened(t, dir)
	f, err := plugins.Open("p") // Install would check its type first
	require.NoError(t, err)
	require.NoError(t, f.Close())
	i := cniinstall.Install{Plugins: plugins, Names: []string{"p"}, BinDir: filepath.Join(dir, "cni")}
	_, err = i.Check(t.Context())
	require.ErrorContains(t, err, "p is a FIFO, not a file")
}
