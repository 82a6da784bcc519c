// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// A run that is killed while it stages its very first file has a record of the directory: even
// an undoing removes what it has left there.
func TestPLAN6_WhatAKilledRunHasStagedIsRemoved(t *testing.T) {
	dir, place := testledger.Dir(t), t.TempDir()
	left := filepath.Join(place, ".slipway-ABCDEFGHIJKLMNOP.tmp")
	want := ledger.FileFrom(filepath.Join(place, "plugin"), 0o755, func() (io.ReadCloser, error) {
		panic("killed")
	})
	require.Panics(t, func() {
		_, _ = testledger.Open(t, dir).Apply(t.Context(), "step", ledger.Wants{List: []ledger.Want{want}})
	})
	require.NoError(t, os.WriteFile(left, []byte(strings.Repeat("x", 10)), 0o755)) // the panic has aborted it
	_, err := testledger.Open(t, dir).Undo(t.Context(), ledger.Undo{})
	require.NoError(t, err)
	entries, err := os.ReadDir(place)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.NoFileExists(t, filepath.Join(dir, "ledger"))
}
