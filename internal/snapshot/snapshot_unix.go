// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package snapshot

import (
	"fmt"
	"io/fs"
	"syscall"
)

// stat returns the file system that a file is on, and the file's owner.
func stat(info fs.FileInfo) (device uint64, owner string) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, ""
	}
	return uint64(st.Dev), fmt.Sprintf("%d:%d", st.Uid, st.Gid)
}
