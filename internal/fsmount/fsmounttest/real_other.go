// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package fsmounttest

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/testns"
)

// NewReal skips the test: there is no such kernel here.
func NewReal(t testing.TB, _ bool) Node {
	t.Helper()
	testns.Root(t)
	return Node{}
}
