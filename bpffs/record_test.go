// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"testing"

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
