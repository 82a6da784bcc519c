// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package record

import (
	"io/fs"
	"os"
)

func owner(fs.FileInfo) (uid, gid int) { return 0, 0 }

func chown(*os.File, State) error { return nil }
