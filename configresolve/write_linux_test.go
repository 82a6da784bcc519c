// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestWriteDirOnAFullFileSystem(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"))
	older := config(t, values{"a": "1", "b": "1"})
	writeDir(t, dir, older)
	_, err := configresolve.WriteDir(t.Context(), dir, config(t, values{"a": "2", "big": strings.Repeat("x", 1<<20)}))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, dir)
	requireLayout(t, dir, older)
}

func TestWriteDirOnAReadOnlyMount(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	c := config(t, values{"a": "1"})
	writeDir(t, dir, c)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.False(t, writeDir(t, dir, c), "it holds what it should")
	_, err := configresolve.WriteDir(t.Context(), dir, config(t, values{"a": "2"}))
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "the mount is read-only: mount an emptyDir")
	requireLayout(t, dir, c)
}
