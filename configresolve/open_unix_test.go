// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configresolve_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve"
)

// Reading neither waits for a FIFO without a writer nor reads an endless device to its end.
func TestSourcesThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	device, directory := filepath.Join(t.TempDir(), "device"), t.TempDir()
	require.NoError(t, os.Symlink("/dev/zero", device))
	for path, kind := range map[string]string{fifo: "a FIFO", device: "a device", directory: "a directory"} {
		_, err := configresolve.File(path).Read(t.Context())
		require.EqualError(t, err, path+" is "+kind+", not a regular file")
		require.NotErrorIs(t, err, configresolve.ErrMissing)
	}
	for path, kind := range map[string]string{fifo: "a FIFO", device: "a device"} {
		_, err := configresolve.Dir(filepath.Dir(path)).Read(t.Context())
		require.EqualError(t, err, path+" is "+kind+", not a regular file")
	}
	flags := write(t, filepath.Join(t.TempDir(), "flags"), "[of: another, format]")
	var content any
	require.NoError(t, configresolve.DecodeFile(t.Context(), flags, &content))
	require.Equal(t, []any{map[string]any{"of": "another"}, "format"}, content)
	require.NoError(t, os.Truncate(flags, 8<<20+1))
	err := configresolve.DecodeFile(t.Context(), flags, &content)
	require.ErrorContains(t, err, "is larger than 8388608 bytes")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = configresolve.File(write(t, filepath.Join(t.TempDir(), "f"), "a: b")).Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
