// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package journal

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// trusted returns an error unless the object at path belongs to this process's user and
// no other user may write there. A group may; but if that user is root, only the group
// root.
func trusted(path string, stat func() (fs.FileInfo, error)) error {
	info, err := stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	uid := os.Geteuid()
	foreignGroup := uid == 0 && st.Gid != 0
	switch {
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is a %s, not a file: %w (look at it, and move it away)", path, filemode.Type(info.Mode()), ErrUntrusted)
	case int(st.Uid) != uid:
		return fmt.Errorf("%s belongs to uid %d: %w (chown it to %d once you have looked at its content)", path, st.Uid, ErrUntrusted, uid)
	case info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && foreignGroup:
		return fmt.Errorf("%s has mode %04o: %w (chmod go-w it once you have looked at its content)", path, filemode.Unix(info.Mode()), ErrUntrusted)
	case !info.IsDir() && st.Nlink > 1: // none has one that was removed meanwhile
		return fmt.Errorf("%s has hard links: %w (look at its content, and replace it by a copy)", path, ErrUntrusted)
	}
	return nil
}

func ids(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}

func chown(f *os.File, s State) error { return f.Chown(s.UID, s.GID) }

// own gives f to the owner of s, unless it already has it: so users who may not change
// owners can call it, too.
func own(f *os.File, s State) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if uid, gid := ids(info); uid == s.UID && gid == s.GID {
		return nil
	}
	return chown(f, s)
}
