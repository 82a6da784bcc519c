// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package testns

import "testing"

// Root skips the test: there are no namespaces here.
func Root(t testing.TB) {
	t.Helper()
	Skip(t, "needs Linux")
}

// Enter skips the test: there are no namespaces here.
func Enter(t testing.TB, _ Namespace) {
	t.Helper()
	Root(t)
}

// TempDir returns a temporary directory that is removed with the test.
func TempDir(t testing.TB) string {
	t.Helper()
	return t.TempDir()
}
