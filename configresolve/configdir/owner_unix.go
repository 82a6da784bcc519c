// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}

// chown gives f an owner, and does nothing if f already has that owner.
func chown(f *os.File, uid, gid int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if u, g := ownerOf(info); u == uid && g == gid {
		return nil
	}
	err = f.Chown(uid, gid)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (%w)", err, errNeedsChown)
	}
	return err
}
