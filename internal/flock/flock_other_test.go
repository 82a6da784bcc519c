// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package flock_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/flock"
)

func TestOnOtherSystemsALockLocksNothing(t *testing.T) {
	file := flock.File{Path: filepath.Join(t.TempDir(), "lock")}
	for range 2 {
		unlock, err := file.Lock(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, unlock()) }()
	}
	require.NoFileExists(t, file.Path)
}
