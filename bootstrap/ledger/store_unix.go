// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package ledger

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// trusted returns an error unless it is a file or directory, and belongs to this process's user and no other may write there. A group may; but if that user is root, only the group root.
func trusted(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	uid := os.Geteuid()
	groupMay := info.Mode()&0o020 != 0 && (uid != 0 || st.Gid == 0)
	switch {
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is a %s, not a file: %w (look at it, and move it away)", path, filemode.Type(info.Mode()), ErrUntrusted)
	case int(st.Uid) != uid:
		return fmt.Errorf("%s belongs to uid %d: %w (chown it to %d once you have looked at its content)", path, st.Uid, ErrUntrusted, uid)
	case info.Mode()&0o002 != 0, info.Mode()&0o020 != 0 && !groupMay:
		return fmt.Errorf("%s has mode %04o: %w (chmod go-w it once you have looked at its content)",
			path, filemode.Unix(info.Mode()), ErrUntrusted)
	case !info.IsDir() && st.Nlink > 1:
		return fmt.Errorf("%s has hard links: %w (look at its content, and replace it by a copy)", path, ErrUntrusted)
	}
	return nil
}

// ids returns a file's owner and group.
func ids(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}

// identity is a file's inode and modification time: an equal file that a package puts in its
// place has neither, one that is only touched the inode, and one on a copied disk the time.
func identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime().String()
	}
	return fmt.Sprint(st.Ino, " ", info.ModTime().UnixNano())
}

// device identifies the file system that a file is on.
func device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}
