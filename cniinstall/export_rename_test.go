// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

// RenameChecked is what replaces renameat2(2) where a file system lacks it.
var RenameChecked = renameChecked
