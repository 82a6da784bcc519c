// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod

import "golang.org/x/sys/unix"

// Below are the modules of a node whose root is dir.
func (m Modules) Below(dir string) Modules {
	m.root = dir
	return m
}

// Release is the running kernel's.
func Release() string {
	var name unix.Utsname
	_ = unix.Uname(&name)
	return unix.ByteSliceToString(name.Release[:])
}
