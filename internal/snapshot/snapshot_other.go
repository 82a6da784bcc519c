// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package snapshot

import "io/fs"

func stat(fs.FileInfo) (device uint64, owner string) { return 0, "" }
