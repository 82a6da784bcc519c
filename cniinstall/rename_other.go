// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cniinstall

// renameNew renames a file to a name that nobody has.
func renameNew(from, to string) error { return renameChecked(from, to) }
