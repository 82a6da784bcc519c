// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
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
