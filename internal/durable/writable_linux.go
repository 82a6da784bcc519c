// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Writable returns an error if this process cannot create files in dir. A missing
// directory stands for the nearest existing parent, which is returned. The kernel reports
// a read-only mount only to a process that could otherwise write, so that is checked
// first.
func Writable(dir string) (nearest string, err error) {
	var st unix.Statfs_t
	err = unix.Statfs(dir, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
		return Writable(filepath.Dir(dir))
	case err == nil && st.Flags&unix.ST_RDONLY != 0:
		return dir, unix.EROFS
	}
	return dir, unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// ReadOnly reports whether the directory is on a file system mounted read-only.
func (d *Dir) ReadOnly() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(d.self.Fd()), &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

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
