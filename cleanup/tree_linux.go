// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// inode identifies a file for as long as it exists.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), uint64(st.Ino)} }

// tree is a directory, or a single file, that is given by the path of itself.
// Symbolic links among the parents of the path are followed. Below it, and for
// its last element, none is, and no mount is entered.
type tree struct {
	parent   *durable.Dir // the directory that holds it
	parentID inode
	name     string // in parent
	path     string // with no symbolic link among the parents
	id       inode
	dir      bool
	link     string // where it leads to, if it is a symbolic link
	mount    bool   // it is itself a mount point
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

// openTree returns nil, and no error, where there is nothing at path.
func openTree(path string) (*tree, error) {
	if err := validStatePath(path); err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	parent, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, notThere(err)
	}
	dir, err := resolved(parent, filepath.Dir(path))
	if err != nil {
		parent.Close()
		return nil, notThere(err)
	}
	t := &tree{parent: parent, name: filepath.Base(path), path: filepath.Join(dir, filepath.Base(path))}
	if err := t.look(); err != nil {
		t.close()
		return nil, notThere(err)
	}
	return t, nil
}

// resolved is the path without symbolic links of an open directory.
func resolved(d *durable.Dir, path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	open, errOpen := d.Stat()
	named, errNamed := os.Lstat(path)
	if err := errors.Join(errOpen, errNamed); err != nil {
		return "", err
	}
	if !os.SameFile(open, named) {
		return "", fmt.Errorf("%s: %w", path, errOther)
	}
	return path, nil
}

// fd is the descriptor of the directory that holds the tree.
func (t *tree) fd() int { return int(t.parent.File().Fd()) }

func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (t *tree) close() { t.parent.Close() }

func (t *tree) look() error {
	dir := t.fd()
	fd, err := openBelow(dir, t.name, unix.O_PATH)
	if errors.Is(err, unix.EXDEV) {
		t.mount = true
		fd, err = unix.Openat(dir, t.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: t.path, Err: err}
	}
	defer unix.Close(fd)
	var st, above, root unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstat(dir, &above)); err != nil {
		return &os.PathError{Op: "stat", Path: t.path, Err: err}
	}
	if err := unix.Stat("/", &root); err != nil {
		return &os.PathError{Op: "stat", Path: "/", Err: err}
	}
	t.id, t.parentID, t.dir = inodeOf(&st), inodeOf(&above), st.Mode&unix.S_IFMT == unix.S_IFDIR
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if t.link, err = readLink(fd); err != nil {
			return &os.PathError{Op: "readlink", Path: t.path, Err: err}
		}
	}
	if t.id == inodeOf(&root) {
		return fmt.Errorf("%s is the root of the file system: refusing to empty it", t.path)
	}
	return nil
}

// readLink reads a symbolic link that is open.
func readLink(fd int) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// openSame opens a directory, which must still be the one that was seen. A mount
// on it is entered.
func openSame(dir int, name string, seen inode) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := isInode(fd, seen); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// isInode is an error unless what is open is what was seen.
func isInode(fd int, seen inode) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if inodeOf(&st) != seen {
		return errOther
	}
	return nil
}

// unlink removes a name from a directory; already gone is success. The error
// does not say where the directory is.
func unlink(dir int, name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(dir, name, flags)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return unlinkHint(dir, name, err)
}

// removing is an error of unlink that names the path.
func removing(path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

// unlinkHint says why root may not remove a name: the file or its directory
// is immutable or append-only (chattr(1)).
func unlinkHint(dir int, name string, err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	if attr := blockingAttr(dir); attr != "" {
		return remedy.Add(err, "its directory is "+attr)
	}
	fd, openErr := openBelow(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if openErr != nil {
		return err
	}
	defer unix.Close(fd)
	if attr := blockingAttr(fd); attr != "" {
		return remedy.Add(err, "it is "+attr)
	}
	return err
}

func blockingAttr(fd int) string {
	const appendOnly, immutable = 0x20, 0x10 // linux/fs.h, FS_APPEND_FL and FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	switch {
	case err != nil:
		return ""
	case flags&immutable != 0:
		return "immutable: chattr -i"
	case flags&appendOnly != 0:
		return "append-only: chattr -a"
	}
	return ""
}
