// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
)

// Dir is an open directory.
type Dir struct {
	path string
	fd   int
	id   Inode
}

// OpenDir opens a directory of a file system of the given type (statfs(2)); the
// error is ENOENT for one of another. The last element of the path is not
// followed.
func OpenDir(path string, fsType uint32) (*Dir, error) {
	above, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	d, err := above.OpenDir(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var fs unix.Statfs_t
	var st unix.Stat_t
	open := int(d.File().Fd())
	if err := errors.Join(unix.Fstatfs(open, &fs), unix.Fstat(open, &st)); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if uint32(fs.Type) != fsType {
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
	fd, err := unix.FcntlInt(uintptr(open), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return &Dir{path, fd, InodeOf(&st)}, nil
}

// Close closes the directory.
func (d *Dir) Close() { _ = unix.Close(d.fd) } // nothing was written

// Walk visits the entries with a matching name and everything below them, as [Tree.Walk]
// does. It closes the directory.
func (d *Dir) Walk(ctx context.Context, match func(name string) bool, visit func(Entry) (remains bool, err error)) error {
	w := walker{visit: visit, match: match}
	_, err := w.walk(ctx, &level{name: d.path, dir: d.fd, id: d.id})
	return err
}
