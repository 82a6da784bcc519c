// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package testledger opens ledgers for the tests of kinds.
package testledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Agent is the agent of the ledgers that [Open] opens.
const Agent = "test"

// Dir makes a directory that no other user may write to, for what a test records.
func Dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// Open opens the ledger in dir for the agent [Agent], without an owner, until the test ends.
// It knows the kinds beforehand, as an uninstaller does.
func Open(t testing.TB, dir string, kinds ...*ledger.Kind) *ledger.Book {
	t.Helper()
	return OpenFor(t, dir, Agent, kinds...)
}

// OpenFor is Open for an agent.
func OpenFor(t testing.TB, dir, agent string, kinds ...*ledger.Kind) *ledger.Book {
	t.Helper()
	book, err := (&ledger.Ledger{Dir: dir, Agent: agent, NoOwner: true, Kinds: kinds}).Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	return book
}
