// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// RemoveAll removes the tree, except kept paths, mount points, and the directories above
// these. A mount point is emptied, not removed.
func (t *Tree) RemoveAll(ctx context.Context, keep *Keep) error {
	full, err := t.Walk(ctx, keep, nil, removeEntry)
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
		return true, e.failed("remove", errors.New("something is mounted on it"))
	}
	if err := unlink(e.in.fd, e.name, e.IsDir); err != nil {
		return true, e.failed("remove", err)
	}
	return false, nil
}

// Remove removes a file, or a directory that is empty.
func (t *Tree) Remove() error {
	if err := unlink(t.fd(), t.Name, t.IsDir); err != nil {
		return &os.PathError{Op: "remove", Path: t.Path, Err: err}
	}
	return nil
}

// Rename gives a file another name in its directory, unless something has that
// name. It is durable.
func (t *Tree) Rename(name string) error {
	err := t.parent.RenameNew(t.Name, name)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists by now; left as it is: %w", name, os.ErrExist)
	}
	return err
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
