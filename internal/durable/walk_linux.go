// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/printable"
)

// maxLinks is how many symbolic links a path may lead through, as in
// path_resolution(7).
const maxLinks = 40

// walk opens the directory at path (O_PATH), element by element.
func walk(path string) (*os.File, error) {
	return (&walker{path: path, fd: -1}).walk()
}

// OpenVetted opens the object at path (O_PATH), unless users other than root and this
// process's own may change or exchange it. One of these two must own it and each
// directory and link on the way, and no other user may write to it, or to a directory
// that is not sticky. Else the error matches [ErrShared]. An absolute path starts at
// root, which links do not leave; if root is nil, at the process's own root directory. A
// vetted object is also found by its path, since no other user can put anything there.
func OpenVetted(root *os.File, path string) (*os.File, error) {
	return (&walker{path: path, fd: -1, root: root, vetted: true}).walk()
}

// Resolve returns the path to which path leads as the kernel would walk it: absolute, without
// symbolic links, "." or "..". Any final part of it may be missing, also behind a link. A link
// is followed under the condition of [OpenDir].
func Resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty path")
	}
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		path = wd + "/" + path // not Join, which drops ".." unseen
	}
	w := &walker{path: path, fd: -1, naming: true}
	reached, err := w.walk()
	if err != nil {
		return "", err
	}
	return w.name, reached.Close()
}

func (w *walker) walk() (*os.File, error) {
	path := w.path
	err := w.restart(path)
	for err == nil && len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		err = w.step(name)
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("open %s%s: %w", w.wanted(), printable.Line(path), err)
	}
	return os.NewFile(uintptr(w.fd), path), nil
}

type walker struct {
	path   string
	fd     int      // the object reached so far: a directory, except at the end of a vetted path
	rest   []string // elements still to go
	links  int
	root   *os.File // nil: the process's own
	vetted bool     // each element, not only links
	naming bool     // what is missing is no error, nor is a file at the end
	name   string   // the path walked, without links, if it is absolute
	absent int      // elements at its end that are missing
}

// wanted names the object that the path must lead to, for errors.
func (w *walker) wanted() string {
	if w.vetted {
		return ""
	}
	return "directory "
}

// restart continues at the start of path, with its elements first.
func (w *walker) restart(path string) error {
	start := "."
	if strings.HasPrefix(path, "/") {
		start = "/"
	}
	if w.fd < 0 || start == "/" {
		at := unix.AT_FDCWD
		if w.root != nil {
			at, start = int(w.root.Fd()), "."
		}
		fd, err := openat(at, start, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		w.enter(fd)
		w.name, w.absent = "/", 0
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
	if name == ".." && w.root != nil && w.atRoot() {
		return nil
	}
	if w.absent > 0 {
		w.pass(name)
		return nil
	}
	fd, err := openat(w.fd, name, unix.O_PATH|unix.O_NOFOLLOW)
	if w.naming && errors.Is(err, unix.ENOENT) {
		w.pass(name)
		return nil
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && w.vetted {
		err = w.vet(name, fd, &st)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case err != nil:
	case kind == unix.S_IFDIR, kind != unix.S_IFLNK && (w.vetted || w.naming) && len(w.rest) == 0:
		w.enter(fd)
		w.name = filepath.Join(w.name, name)
		return nil
	case kind == unix.S_IFLNK:
		err = w.follow(name, fd, &st)
	default:
		err = unix.ENOTDIR
	}
	return errors.Join(err, unix.Close(fd))
}

// pass goes over an element that is missing, or back.
func (w *walker) pass(name string) {
	w.name = filepath.Join(w.name, name)
	if name == ".." {
		w.absent--
	} else {
		w.absent++
	}
}

// atRoot reports whether the directory reached is the walk's root.
func (w *walker) atRoot() bool {
	var root, st unix.Stat_t
	return unix.Fstat(int(w.root.Fd()), &root) == nil && unix.Fstat(w.fd, &st) == nil && root.Dev == st.Dev && root.Ino == st.Ino
}

// vet returns an error if others may change or replace the object of this name in the
// directory reached. Write permission on a socket allows connecting to it.
func (w *walker) vet(name string, fd int, st *unix.Stat_t) error {
	var dir unix.Stat_t
	if err := unix.Fstat(w.fd, &dir); err != nil {
		return err
	}
	why := others(int(st.Uid), int(st.Gid), 0)
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFREG || kind == unix.S_IFDIR && len(w.rest) == 0 {
		why = othersOf(fd, st)
	}
	if why != "" {
		return fmt.Errorf("%q: %w: %s", name, ErrShared, why)
	}
	// In a sticky directory others may give a file of root's another name (link(2)).
	why = othersOf(w.fd, &dir)
	if !trusted(&dir, st, why) || st.Mode&unix.S_IFMT == unix.S_IFREG && why != "" {
		return fmt.Errorf("the directory that holds %q: %w: %s", name, ErrShared, why)
	}
	return nil
}

// follow goes to the target of the symbolic link in the directory reached.
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
	if fs.Type == unix.PROC_SUPER_MAGIC && w.vetted {
		return fmt.Errorf("%q: %w: it is a link of a process", name, ErrShared)
	}
	if fs.Type == unix.PROC_SUPER_MAGIC && !w.naming { // its links lead to files, not to names
		fd, err := openat(w.fd, name, unix.O_PATH|unix.O_DIRECTORY)
		if err == nil {
			w.enter(fd)
		}
		return err
	}
	target, err := ReadOpenLink(link)
	if err != nil {
		return err
	}
	return w.restart(target)
}

// ReadOpenLink reads an open symbolic link.
func ReadOpenLink(link int) (string, error) {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", target)
	if err != nil {
		return "", err
	}
	return string(target[:n]), nil
}

// trustLink returns an error unless only root or this process's user can have put the
// link there.
func trustLink(dir int, name string, link *unix.Stat_t) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if !trusted(&st, link, othersOf(dir, &st)) {
		return fmt.Errorf("%q on the way is %w", name, ErrUntrusted)
	}
	return nil
}

// trusted reports whether only root or this process's user can have put the link into the
// directory, and can exchange it; why is the result of othersOf for the directory.
func trusted(dir, link *unix.Stat_t, why string) bool {
	ours := func(st *unix.Stat_t) bool { return st.Uid == 0 || int(st.Uid) == os.Geteuid() }
	return ours(dir) && ours(link) && (why == "" || dir.Mode&unix.S_ISVTX != 0)
}

// othersOf returns why users other than root and this process's own may change the object
// open as fd: "" if they may not. With an access control list, the group's permissions
// are the most that any user in the list has (acl(5)).
func othersOf(fd int, st *unix.Stat_t) string {
	why := others(int(st.Uid), int(st.Gid), st.Mode)
	if why != "" || st.Mode&unix.S_IWGRP == 0 {
		return why
	}
	_, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", fd), "system.posix_acl_access", nil)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return ""
	}
	return fmt.Sprintf("it has mode %04o and an access control list", st.Mode&0o7777)
}

// renameNew is atomic if the file system supports it (renameat2(2)).
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
