// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

// mountReadOnly mounts a directory read-only; writable undoes that.
func mountReadOnly(t *testing.T, dir string) (writable func()) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	remount := func(flags uintptr) {
		require.NoError(t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""))
	}
	remount(unix.MS_RDONLY)
	return func() { remount(0) }
}

// If one of two directories is read-only, as on an immutable image, the other is enough, and Advise
// says so. If both are, nothing is changed. Once the directory is writable, plugins are installed
// there too.
func TestCNI10_OneWritableDirectoryIsEnough(t *testing.T) {
	for _, shut := range []int{0, 1} {
		testns.Enter(t, testns.Mount)
		n, i, second := calico(t)
		dirs := []string{n.bin, second}
		open := mountReadOnly(t, dirs[shut])
		requireApplied(t, i, n.root)
		require.NoFileExists(t, filepath.Join(dirs[shut], "calico"))
		requireContent(t, filepath.Join(dirs[1-shut], "calico-ipam"), who, 0o755)
		require.Contains(t, strings.Join(n.advice(i), "\n"), "plugins in "+dirs[shut]+" are not updated: it is not writable")

		open()
		requireApplied(t, i, n.root)
		requireContent(t, filepath.Join(dirs[shut], "calico"), who, 0o755)
		require.Empty(t, n.advice(i))
		require.NoError(t, i.Revert(t.Context()))
		require.NoFileExists(t, n.plugin("calico"))
		require.NoFileExists(t, filepath.Join(second, "calico"))

		mountReadOnly(t, n.bin)
		mountReadOnly(t, second)
		before := tree(t, n.root)
		require.ErrorContains(t, i.Apply(t.Context()), "is not writable")
		require.Equal(t, before, tree(t, n.root))
	}
}
