// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

// RenameChecked is what replaces renameat2(2) where a file system lacks it.
func (d *Dir) RenameChecked(from, to string) error { return d.renameChecked(from, to) }
