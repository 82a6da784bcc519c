// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"testing"

	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// recorded is a mount that a step wants.
type recorded struct {
	testledger.Step
	mount *cgroup.Mount
}

func record(t *testing.T, m cgroup.Mount) recorded {
	t.Helper()
	return recorded{testledger.Step{Wanter: &m, Book: testledger.Open(t, testledger.Dir(t))}, &m}
}
