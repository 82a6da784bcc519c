// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveAll removes the tree, except kept paths, mount points, and the directories above
// these. A mount point is emptied, not removed.
func (t *Tree) RemoveAll(ctx context.Context, keep *Keep) error {
	full, err := t.walk(ctx, keep, &walker{visit: removeEntry, removes: true})
	if err != nil || full || t.Mount || keep.Keeps(t.Path) {
		return err
	}
	err = t.Remove()
	if errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("%w (something was added meanwhile)", err)
	}
	return err
}

func removeEntry(e Entry) (remains bool, err error) {
	switch {
	case e.Kept || e.Full:
		return true, nil
	case e.Mount:
		return true, removing(displayPath(e.levels, e.name), errors.New("something is mounted on it"))
	}
	if err := unlink(e.parent, e.name, e.IsDir); err != nil {
		return true, removing(displayPath(e.levels, e.name), err)
	}
	return false, nil
}

// Remove removes a file, or a directory that is empty.
func (t *Tree) Remove() error { return removing(t.Path, unlink(t.fd(), t.Name, t.IsDir)) }

// Rename gives a file another name in its directory, unless something has that
// name. It is durable.
func (t *Tree) Rename(name string) error {
	dir := t.fd()
	err := unix.Renameat2(dir, t.Name, dir, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = renameByLink(dir, t.Name, name) // the file system knows no such rename
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s exists by now; left as it is: %w", name, err)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: t.Path, New: name, Err: err}
	}
	return os.NewSyscallError("sync "+filepath.Dir(t.Path), unix.Fsync(dir))
}

func renameByLink(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}

// unlink removes a name from a directory; already gone is success. The error does not
// name the directory.
func unlink(dir int, name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	if err := unix.Unlinkat(dir, name, flags); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// removing is an error of unlink that names the path.
func removing(path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}
