// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package ledger

import (
	"io/fs"
	"syscall"
)

// stat is what the system knows of a file, if it does.
func stat(info fs.FileInfo) (s fileStat) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s = fileStat{true, int(st.Uid), int(st.Gid), uint64(st.Nlink), uint64(st.Ino), uint64(st.Dev)}
	}
	return s
}
