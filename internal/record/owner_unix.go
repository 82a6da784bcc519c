// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package record

import (
	"io/fs"
	"os"
	"syscall"
)

func owner(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}

func chown(f *os.File, s State) error { return f.Chown(s.UID, s.GID) }
