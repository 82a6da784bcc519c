// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package ledger

import "io/fs"

// stat returns nothing: owners and inodes are known on Unix only.
func stat(fs.FileInfo) fileStat { return fileStat{} }
