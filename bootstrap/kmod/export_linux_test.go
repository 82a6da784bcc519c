// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod

import (
	"testing"

	"golang.org/x/sys/unix"
)

// On has the test look at a node below dir, which is as it was made.
func On(t testing.TB, dir string) {
	root = dir
	t.Cleanup(func() { root = "" })
}

// Release is the running kernel's.
func Release() string {
	var name unix.Utsname
	_ = unix.Uname(&name)
	return unix.ByteSliceToString(name.Release[:])
}
