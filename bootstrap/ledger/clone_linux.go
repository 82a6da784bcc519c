// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes the empty file f share the blocks of r (ioctl_ficlone(2), as XFS and Btrfs can),
// and reports whether it did. Unlike a link, f keeps its content when r is written to.
func clone(f *os.File, r io.Reader) bool {
	source, isFile := r.(*os.File)
	if !isFile {
		return false
	}
	at, err := source.Seek(0, io.SeekCurrent)
	return at == 0 && err == nil && unix.IoctlFileClone(int(f.Fd()), int(source.Fd())) == nil
}
