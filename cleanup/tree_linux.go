// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// inode identifies a file for as long as it exists.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), uint64(st.Ino)} }

// tree is a directory, or a single file, that is given by the path of itself.
// Symbolic links among the parents of the path are followed. Below it, and for
// its last element, none is, and no mount is entered.
type tree struct {
	parent   *os.File // the directory that holds it
	parentID inode
	name     string // in parent
	path     string // with no symbolic link among the parents
	id       inode
	dir      bool
	link     string // where it leads to, if it is a symbolic link
	mount    bool   // it is itself a mount point
}

// entry is what walk found at one name.
type entry struct {
	parent int // descriptor of the directory that holds it
	name   string
	path   string
	id     inode
	dir    bool
	mount  bool // something is mounted on it; nothing else is known of it
	full   bool // a directory in which something is left
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
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, notThere(err)
	}
	parent, err := os.Open(dir)
	if err != nil {
		return nil, notThere(err)
	}
	t := &tree{parent: parent, name: filepath.Base(path), path: filepath.Join(dir, filepath.Base(path))}
	if err := t.look(); err != nil {
		t.close()
		return nil, notThere(err)
	}
	return t, nil
}

func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (t *tree) close() { t.parent.Close() }

func (t *tree) look() error {
	dir := int(t.parent.Fd())
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

// open opens a tree that is a directory, to walk it.
func (t *tree) open() (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(t.parent.Fd()), t.name, flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: t.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), t.path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "stat", Path: t.path, Err: err}
	}
	if inodeOf(&st) != t.id {
		f.Close()
		return nil, fmt.Errorf("%s: %w", t.path, errOther)
	}
	return f, nil
}

// walk calls visit for everything in the tree, a directory after what is in
// it, but not for the tree itself. What visit reports as left makes the
// directories above it full. An error of visit is added to the result, and the
// walk goes on.
func (t *tree) walk(ctx context.Context, visit func(entry) (left bool, err error)) (full bool, err error) {
	if !t.dir {
		return false, nil
	}
	dir, err := t.open()
	if err != nil {
		return true, err
	}
	defer dir.Close()
	w := walker{visit: visit}
	full = w.directory(ctx, dir)
	return full, w.errs.join()
}

type walker struct {
	visit func(entry) (bool, error)
	errs  errorSet
}

func (w *walker) directory(ctx context.Context, dir *os.File) (full bool) {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		w.errs.add(err)
		full = true
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			w.errs.add(err)
			return true
		}
		left, err := w.name(ctx, dir, name)
		w.errs.add(err)
		full = full || left
	}
	return full
}

func (w *walker) name(ctx context.Context, dir *os.File, name string) (left bool, err error) {
	e, err := lookBelow(dir, name)
	if err != nil {
		return true, err
	}
	if e == nil {
		return false, nil
	}
	if e.dir && !e.mount {
		full, err := w.below(ctx, dir, e)
		if err != nil {
			return true, err
		}
		e.full = full
	}
	return w.visit(*e)
}

// lookBelow returns nil where the name is gone by now.
func lookBelow(dir *os.File, name string) (*entry, error) {
	e := &entry{parent: int(dir.Fd()), name: name, path: filepath.Join(dir.Name(), name)}
	fd, err := openBelow(e.parent, name, unix.O_PATH)
	switch {
	case errors.Is(err, unix.EXDEV):
		e.mount = true
		return e, nil
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: e.path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: e.path, Err: err}
	}
	e.id, e.dir = inodeOf(&st), st.Mode&unix.S_IFMT == unix.S_IFDIR
	return e, nil
}

func (w *walker) below(ctx context.Context, dir *os.File, e *entry) (full bool, err error) {
	fd, err := openBelow(e.parent, e.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return true, &os.PathError{Op: "open", Path: e.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), e.path)
	defer f.Close()
	return w.directory(ctx, f), nil
}

// unlink removes a name from a directory; already gone is success.
func unlink(dir int, name, path string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(dir, name, flags)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: path, Err: unlinkHint(dir, name, err)}
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
