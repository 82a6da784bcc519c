// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPLAN6_WhatARebootTookIsUndone(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	put(t, open(t, state), path, "ours")
	b := open(t, state)
	e, _ := b.Lookup(path)
	require.NoError(t, b.Forget(path))
	e.Boot = "another"
	require.NoError(t, b.Begin(e))
	require.NoError(t, b.Complete(e))

	require.NoError(t, undo(open(t, state)))
	require.FileExists(t, path, "made by somebody else since the reboot")
	require.NoDirExists(t, state)
}
