// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// InMemory reports whether the directory's content is lost at the next boot.
func (d *Dir) InMemory() (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.self.Fd()), &st); err != nil {
		return false, &fs.PathError{Op: "statfs", Path: d.path, Err: err}
	}
	switch uint32(st.Type) { // its width is the architecture's
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true, nil
	}
	return false, nil
}
