// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ownershipfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	require.NoError(t, os.WriteFile(path, []byte("pins: [acme_*]\n"), 0o600))
	link := filepath.Join(dir, "acme.yaml") // as a mounted ConfigMap has it
	require.NoError(t, os.Symlink("data", link))
	own, err := ownershipfile.ReadFile(t.Context(), link)
	require.NoError(t, err)
	require.Equal(t, []string{"acme_*"}, own.Pins)

	require.NoError(t, os.WriteFile(path, []byte("pin: a\n"), 0o600))
	_, err = ownershipfile.ReadFile(t.Context(), link)
	require.ErrorIs(t, err, ownershipfile.ErrInvalid)
	require.ErrorContains(t, err, link+": invalid ownership file: line 1: field pin not found")

	_, err = ownershipfile.ReadFile(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, ownershipfile.ErrInvalid)
}

func TestSEC5_SEC6_OwnershipIsOfABoundedFile(t *testing.T) {
	dir := t.TempDir()
	fifo, sparse := filepath.Join(dir, "fifo"), filepath.Join(dir, "sparse")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 200<<30))
	for path, says := range map[string]string{
		fifo: "is a FIFO, not a regular file", sparse: "is larger than 1048576 bytes", dir: "is a directory", "/dev/zero": "is a device",
	} {
		_, err := ownershipfile.ReadFile(t.Context(), path)
		require.ErrorContains(t, err, path+" "+says)
		require.NotErrorIs(t, err, ownershipfile.ErrInvalid)
	}
}
