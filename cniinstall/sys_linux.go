// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback lets the disk begin with size bytes from offset, while the
// rest is being copied and hashed. It is a hint: fsync follows.
func startWriteback(f *os.File, offset, size int64) {
	unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
}
