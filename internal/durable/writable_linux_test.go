// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestWritable(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := testns.TempDir(t)
	for _, dir := range []string{"good", "read-only"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	readOnly := filepath.Join(root, "read-only")
	require.NoError(t, unix.Mount(readOnly, readOnly, "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("", readOnly, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	require.NoError(t, os.Chmod(root, 0o755))
	writable := func(dir, nearest string) error {
		t.Helper()
		got, err := durable.Writable(filepath.Join(root, dir))
		require.Equal(t, filepath.Join(root, nearest), got)
		return err
	}
	require.NoError(t, writable("good", "good"))
	require.NoError(t, writable("good/a/b", "good"))
	require.ErrorIs(t, writable("read-only", "read-only"), unix.EROFS)
	require.ErrorIs(t, writable("read-only/a/b", "read-only"), unix.EROFS)

	// A user whom the modes exclude still gets the error about the mount.
	require.NoError(t, unix.Setresuid(0, 4242, 0)) // without its capabilities
	good, mounted := writable("good", "good"), writable("read-only", "read-only")
	require.NoError(t, unix.Setresuid(0, 0, 0))
	require.ErrorIs(t, good, unix.EACCES)
	require.ErrorIs(t, mounted, unix.EROFS)
}
