// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package testns

// Root skips the test: there are no namespaces here.
func Root(t TB) {
	t.Helper()
	Skip(t, "needs Linux")
}

// Enter skips the test: there are no namespaces here.
func Enter(t TB, _ Namespace) {
	t.Helper()
	Root(t)
}

// Process skips the test: there are no namespaces here.
func Process(t TB, _ Namespace, _ string) (procDir string) {
	t.Helper()
	Root(t)
	return ""
}

// TempDir returns a temporary directory that is removed with the test.
func TempDir(t TB) string {
	t.Helper()
	return t.TempDir()
}
