// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback lets the disk begin, so that what was written can be read back
// meanwhile. It is a hint: fsync follows.
func startWriteback(f *os.File) {
	unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
