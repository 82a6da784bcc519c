// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/sysctl"
)

// A drop-in does not replace an object that is not a file, as a rename would silently.
func TestDropInIsNotPutOverWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "50-x.conf")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	d := cilium(recordedFile{DropIn: sysctl.DropIn{Dir: dir, Name: "50-x.conf"}})
	_, err := d.Check(context.Background())
	require.ErrorContains(t, err, path+" is in the way: it is not a file; move it away")
	require.ErrorContains(t, d.Apply(context.Background()), path+" is in the way")
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}
