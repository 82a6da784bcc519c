// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewestOf(t *testing.T) {
	names := []string{
		"linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64", "linux-image-6.1.0-56-amd64-dbg", "linux-image-6.1.0-57-cloud-amd64",
		"linux-image-6.12.9+deb12-amd64", "linux-image-6.12.117+deb12-amd64", "linux-image-6.12.118+deb12-rt-amd64",
		"linux-image-7.3.4+deb13-amd64", "linux-image-7.4~rc1-amd64", "linux-image-unsigned-7.3.4+deb13-amd64", "linux-image-amd64",
		"linux-image-6.12.120+deb12-arm64",
	}
	for series, want := range map[string]string{
		"6.1": "linux-image-6.1.0-56-amd64", "6.12": "linux-image-6.12.117+deb12-amd64", newest: "linux-image-7.3.4+deb13-amd64", "6.18": "",
	} {
		require.Equal(t, want, newestOf(names, series, "amd64"), series)
	}
	require.Equal(t, "linux-image-6.12.120+deb12-arm64", newestOf(names, "6.12", arm64))
}

// Archived files are where their headers say, by the kernel's documentation
// (driver-api/early-userspace/buffer-format).
func TestCpio(t *testing.T) {
	var c cpio
	c.file("a/b", []byte("12345"))
	data := c.Bytes()
	require.Zero(t, len(data)%4)
	dir, file := data[:112], data[112:]
	require.Equal(t, "a\x00", string(dir[110:112]))
	require.Equal(t, "070701", string(file[:6]))
	size, err := hex.DecodeString(string(file[6+6*8 : 6+7*8]))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 5}, size)
	require.Equal(t, "a/b\x00", string(file[110:114]))
	require.Equal(t, "12345\x00\x00\x00", string(file[116:124]))
}
