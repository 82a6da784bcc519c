// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// A run that failed half-way has begun an entry. If an administrator then restores the file,
// the uninstall restores the administrator's version.
func TestPLAN6_WhatCameAfterAFailureIsWhatWasBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	write := func(content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
	files := journal.Files{Kind: "acme"}
	j, err := (&journal.Node{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{files}}).Open(context.Background(), nil)
	require.NoError(t, err)
	defer j.Close()
	ctx := journal.With(context.Background(), j.Step("step"))
	write("in the way")
	after, err := journal.Snapshot(ctx, path)
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("ours"))
	after.Size, after.SHA256 = 4, hex.EncodeToString(sum[:])
	require.NoError(t, files.Begin(ctx, j, path, after))

	write("an administrator's")
	require.NoError(t, files.Begin(ctx, j, path, after))
	write("ours")
	require.NoError(t, files.Complete(ctx, j, path))
	require.NoError(t, j.Revert(ctx))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an administrator's", string(content))
}
