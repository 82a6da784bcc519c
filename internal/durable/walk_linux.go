// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may lead through, as in
// path_resolution(7).
const maxLinks = 40

// walk opens the directory at path (O_PATH), element by element.
func walk(path string) (*os.File, error) {
	w := walker{path: path, fd: -1}
	err := w.restart(path)
	for err == nil && len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		err = w.step(name)
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("open directory %s: %w", path, err)
	}
	return os.NewFile(uintptr(w.fd), path), nil
}

type walker struct {
	path  string
	fd    int      // of the directory reached
	rest  []string // elements still to go
	links int
}

// restart goes on from where path starts, with its elements first.
func (w *walker) restart(path string) error {
	start := "."
	if strings.HasPrefix(path, "/") {
		start = "/"
	}
	if w.fd < 0 || start == "/" {
		fd, err := openat(unix.AT_FDCWD, start, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		w.enter(fd)
	}
	elements := slices.DeleteFunc(strings.Split(path, "/"), func(e string) bool { return e == "" || e == "." })
	w.rest = append(elements, w.rest...)
	return nil
}

func (w *walker) enter(fd int) {
	w.close()
	w.fd = fd
}

func (w *walker) close() {
	if w.fd >= 0 {
		_ = unix.Close(w.fd) // nothing was written
	}
}

func (w *walker) step(name string) error {
	fd, err := openat(w.fd, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		w.enter(fd)
		return nil
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		err = w.follow(name, fd, &st)
	default:
		err = unix.ENOTDIR
	}
	return errors.Join(err, unix.Close(fd))
}

// follow goes where the symbolic link in the directory reached leads.
func (w *walker) follow(name string, link int, st *unix.Stat_t) error {
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	if err := trustLink(w.fd, name, st); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(w.fd, &fs); err != nil {
		return err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC { // its links lead to files, not to names
		fd, err := openat(w.fd, name, unix.O_PATH|unix.O_DIRECTORY)
		if err == nil {
			w.enter(fd)
		}
		return err
	}
	target, err := readlink(link)
	if err != nil {
		return err
	}
	return w.restart(target)
}

// readlink reads a symbolic link that is open.
func readlink(link int) (string, error) {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", target)
	if err != nil {
		return "", err
	}
	return string(target[:n]), nil
}

// trustLink is an error unless nobody but root and this process's user can have
// put the link there.
func trustLink(dir int, name string, link *unix.Stat_t) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if !trusted(&st, link) {
		return fmt.Errorf("%q on the way is %w", name, ErrUntrusted)
	}
	return nil
}

// Follow returns where the symbolic link name leads, under the condition of
// [OpenDir].
func (d *Dir) Follow(name string) (string, error) {
	if err := d.named(name); err != nil {
		return "", err
	}
	dir := int(d.self.Fd())
	link, err := openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: d.Path(name), Err: err}
	}
	defer unix.Close(link)
	var st unix.Stat_t
	if err := errors.Join(unix.Fstat(link, &st), trustLink(dir, name, &st)); err != nil {
		return "", &os.PathError{Op: "follow", Path: d.Path(name), Err: err}
	}
	target, err := readlink(link)
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: d.Path(name), Err: err}
	}
	return target, nil
}

// trusted reports whether nobody but root and this process's user can have put
// the link into the directory, or can exchange it.
func trusted(dir, link *unix.Stat_t) bool {
	ours := func(st *unix.Stat_t) bool { return st.Uid == 0 || int(st.Uid) == os.Geteuid() }
	return ours(dir) && ours(link) && (!writableByOthers(dir) || dir.Mode&unix.S_ISVTX != 0)
}

// writableByOthers reports whether anybody but the owner may write: the group
// counts unless it is root's or this process's own.
func writableByOthers(st *unix.Stat_t) bool {
	foreignGroup := st.Gid != 0 && int(st.Gid) != os.Getegid()
	return st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && foreignGroup
}

// renameNew is atomic where the file system can (renameat2(2)).
func (d *Dir) renameNew(from, to string) error {
	fd := int(d.self.Fd())
	err := unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return d.renameChecked(from, to)
	}
	return err
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
