// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// usable returns an error if a plugin in the folder, or in one that is made there,
// could not be written or not be executed.
func usable(dir string) error {
	var st unix.Statfs_t
	at := dir
	err := unix.Statfs(at, &st)
	for errors.Is(err, fs.ErrNotExist) && at != "/" {
		at = filepath.Dir(at)
		err = unix.Statfs(at, &st)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	case st.Flags&unix.ST_RDONLY != 0:
		return fmt.Errorf("%s is on a file system mounted read-only", dir)
	case st.Flags&unix.ST_NOEXEC != 0:
		return fmt.Errorf("%s is on a file system mounted noexec", dir)
	}
	return writable(dir)
}

// writable returns an error if nothing could be written in the folder, or in one that
// is made there.
func writable(dir string) error {
	at := dir
	err := mayWriteIn(at)
	for errors.Is(err, fs.ErrNotExist) && at != "/" {
		at = filepath.Dir(at)
		err = mayWriteIn(at)
	}
	if err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, hint(err))
	}
	return nil
}

// mayWriteIn asks the kernel. That a mount is read-only it says only to those who might
// write otherwise, so that is asked first.
func mayWriteIn(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Flags&unix.ST_RDONLY != 0 {
		return unix.EROFS
	}
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}
