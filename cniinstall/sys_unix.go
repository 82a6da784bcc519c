// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package cniinstall

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasModes: files have permissions and owners, and can be renamed while open.
const hasModes = true

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return os.Geteuid(), os.Getegid()
}

// appearance describes the file at path without reading it. Each write changes
// the time of change, which nobody can set; a folder's times change with each
// temporary file, and do not count.
func appearance(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Sprint(st.Dev, st.Ino)
	}
	return fmt.Sprint(st.Dev, st.Ino, st.Mode, st.Uid, st.Gid, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}
