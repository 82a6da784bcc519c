// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package flock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/flock"
)

func TestLockIsUnsupported(t *testing.T) {
	_, err := flock.File{Path: filepath.Join(t.TempDir(), "lock")}.Lock(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
