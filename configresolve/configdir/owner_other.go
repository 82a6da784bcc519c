// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package configdir

import (
	"io/fs"
	"os"
)

// There are no owners here.
func ownerOf(fs.FileInfo) (uid, gid int) { return 0, 0 }
func chown(*os.File, int, int) error     { return nil }
