// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/failure"
)

// Inode identifies a file for as long as it exists.
type Inode struct{ Dev, Ino uint64 }

// InodeOf returns the identity of the file that info describes.
func InodeOf(st *unix.Stat_t) Inode { return Inode{uint64(st.Dev), uint64(st.Ino)} }

// Location is a name in a directory, however the directory was reached.
type Location struct {
	Dir  Inode
	Name string
}

// Tree is a directory, or a single file.
type Tree struct {
	Location
	Path   string // with no symbolic link among the parents
	ID     Inode
	IsDir  bool
	LinkTo string // where it leads to, if it is a symbolic link
	Mount  bool   // it is itself a mount point
	Empty  bool   // a regular file without content

	parent *durable.Dir
}

const resolveBelow = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS

// openBelow opens name, one element, in the directory dir. The error is EXDEV
// where something is mounted on it.
func openBelow(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: resolveBelow}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOSYS):
			err = fmt.Errorf("%w: openat2 needs a seccomp profile that allows it", errors.ErrUnsupported)
		}
		return fd, err
	}
}

// Open returns nil, and no error, where there is nothing at path, which is
// absolute and not the root.
func Open(path string) (*Tree, error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) || path == "/" {
		return nil, fmt.Errorf("%q: want an absolute path of something below the root", path)
	}
	parent, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, NotThere(err)
	}
	dir, err := parent.RealPath()
	if err != nil {
		parent.Close()
		return nil, NotThere(err)
	}
	t := &Tree{parent: parent, Path: filepath.Join(dir, filepath.Base(path))}
	t.Name = filepath.Base(path)
	if err := t.look(); err != nil {
		t.Close()
		return nil, NotThere(err)
	}
	return t, nil
}

// fd is the descriptor of the directory that the tree is in.
func (t *Tree) fd() int { return int(t.parent.File().Fd()) }

// NotThere returns nil for the error of what is not there.
func NotThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// Close closes the directory that the tree is in.
func (t *Tree) Close() { t.parent.Close() }

func (t *Tree) look() error {
	dir := t.fd()
	fd, err := openBelow(dir, t.Name, unix.O_PATH)
	if errors.Is(err, unix.EXDEV) {
		t.Mount = true
		fd, err = unix.Openat(dir, t.Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: t.Path, Err: err}
	}
	defer unix.Close(fd)
	var st, above, root unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstat(dir, &above)); err != nil {
		return &os.PathError{Op: "stat", Path: t.Path, Err: err}
	}
	if err := unix.Stat("/", &root); err != nil {
		return &os.PathError{Op: "stat", Path: "/", Err: err}
	}
	t.ID, t.Dir, t.IsDir = InodeOf(&st), InodeOf(&above), st.Mode&unix.S_IFMT == unix.S_IFDIR
	t.Empty = st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if t.LinkTo, err = durable.ReadOpenLink(fd); err != nil {
			return &os.PathError{Op: "readlink", Path: t.Path, Err: err}
		}
	}
	if t.ID == InodeOf(&root) {
		return fmt.Errorf("%s is the root of the file system: refusing to empty it", t.Path)
	}
	return nil
}

// isInode returns an error unless the open file is the one seen before, and closes another.
func isInode(fd int, seen Inode) error {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && InodeOf(&st) != seen {
		err = failure.ErrReplaced
	}
	if err != nil {
		unix.Close(fd)
	}
	return err
}
