// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/testns"
)

// node enters a throw-away mount namespace and returns a folder in it that is a
// mount of its own, as /sys or /run are.
func node(t testing.TB) string {
	t.Helper()
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	return dir
}

// mounts returns the types of what is mounted on path, the visible one last.
func mounts(t testing.TB, path string) []string {
	t.Helper()
	infos, err := fsmount.Mounts(fsmount.Real{})
	require.NoError(t, err)
	types := []string{}
	for _, i := range fsmount.On(infos, path) {
		types = append(types, i.FSType)
	}
	return types
}

func TestBPF1_EnsureMountedMakesIt(t *testing.T) {
	path := filepath.Join(node(t), "sys", "fs", "bpf")
	require.NoError(t, bpffs.EnsureMounted(path))
	require.Equal(t, []string{"bpf"}, mounts(t, path))

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700)|os.ModeDir|os.ModeSticky, info.Mode())
	parent, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755)|os.ModeDir, parent.Mode())

	infos, err := fsmount.Mounts(fsmount.Real{})
	require.NoError(t, err)
	options := fsmount.On(infos, path)[0].Options
	for _, o := range []string{"rw", "nosuid", "nodev", "noexec"} {
		require.Contains(t, options, o)
	}

	require.NoError(t, bpffs.EnsureMounted(path), "again")
	require.Equal(t, []string{"bpf"}, mounts(t, path))
}

var _ = context.Background
var _ sync.Mutex
var _ = slices.Sort[[]int]
