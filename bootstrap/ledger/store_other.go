// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package ledger

import "io/fs"

// trusted returns nil: owners and modes are known on Unix only.
func trusted(string, fs.FileInfo) error { return nil }

func ids(fs.FileInfo) (uid, gid int) { return 0, 0 }

func identity(info fs.FileInfo) string { return info.ModTime().String() }

func device(fs.FileInfo) uint64 { return 0 }
