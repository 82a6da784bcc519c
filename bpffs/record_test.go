// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// recorded is a mount that a step wants.
type recorded struct {
	testledger.Step
	mount *bpffs.Mount
}

func record(t *testing.T, m bpffs.Mount) recorded {
	t.Helper()
	return recorded{testledger.Step{Wanter: &m, Book: testledger.Open(t, testledger.Dir(t))}, &m}
}

// changesOf lists what a mount would change.
func changesOf(t *testing.T, m interface {
	Check(ctx context.Context) ([]string, error)
}) []string {
	t.Helper()
	changes, err := m.Check(t.Context())
	require.NoError(t, err)
	return changes
}
