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
	case st.Flags&unix.MS_RDONLY != 0:
		return fmt.Errorf("%s is on a file system mounted read-only", dir)
	case st.Flags&unix.MS_NOEXEC != 0:
		return fmt.Errorf("%s is on a file system mounted noexec", dir)
	}
	return writable(dir)
}

// writable returns an error if nothing could be written in the folder, or in one that
// is made there.
func writable(dir string) error {
	may := func(at string) error { return unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS) }
	at := dir
	err := may(at)
	for errors.Is(err, fs.ErrNotExist) && at != "/" {
		at = filepath.Dir(at)
		err = may(at)
	}
	if err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, hint(err))
	}
	return nil
}
