// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filemode_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/filemode"
)

func TestModes(t *testing.T) {
	for unix, of := range map[uint32]fs.FileMode{
		0: 0, 0o644: 0o644, 0o1777: 0o777 | fs.ModeSticky, 0o6755: 0o755 | fs.ModeSetuid | fs.ModeSetgid,
	} {
		require.Equal(t, unix, filemode.Unix(of|fs.ModeDir))
		require.Equal(t, of, filemode.Go(unix|0o40000))
	}
}

func TestType(t *testing.T) {
	for of, want := range map[fs.FileMode]string{
		0o644: "file", fs.ModeDir | fs.ModeSticky: "directory", fs.ModeSymlink: "symbolic link", fs.ModeNamedPipe: "FIFO",
		fs.ModeSocket: "socket", fs.ModeDevice | fs.ModeCharDevice: "device", fs.ModeIrregular: "special file",
	} {
		require.Equal(t, want, filemode.Type(of))
	}
}
