// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Writable returns an error if this process could make nothing in dir. A missing
// directory stands for the nearest one above it, which is returned. The kernel says
// that a mount is read-only only to those who might write otherwise, so that is
// asked first.
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
