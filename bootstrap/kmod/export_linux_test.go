// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod

import "golang.org/x/sys/unix"

// Below returns the modules for a node whose root is dir.
func (m Modules) Below(dir string) Modules {
	m.root = dir
	return m
}

// Release returns the running kernel's release.
func Release() string {
	var name unix.Utsname
	_ = unix.Uname(&name)
	return unix.ByteSliceToString(name.Release[:])
}
