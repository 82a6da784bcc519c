// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// lock is an open lock file. It holds on to the directories too, so that they
// stay the same ones whichever mount namespace unlock is called in.
type lock struct {
	parent, dir, file int
	dirName, name     string
}

// open opens the file, and makes it and its directory if they are missing.
func open(path string) (*lock, error) {
	dir := filepath.Dir(path)
	l := &lock{parent: -1, dir: -1, file: -1, dirName: filepath.Base(dir), name: filepath.Base(path)}
	err := l.openDir(filepath.Dir(dir))
	if err == nil {
		err = l.openFile()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lock) openDir(parent string) (err error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY
	if l.parent, err = openat(unix.AT_FDCWD, parent, flags, 0); err != nil {
		return fmt.Errorf("open directory %s: %w (create it, or name another)", parent, err)
	}
	l.dir, err = openat(l.parent, l.dirName, flags, 0)
	if !errors.Is(err, unix.ENOENT) {
		return hint(err, "open", "directory "+l.dirName)
	}
	if err := unix.Mkdirat(l.parent, l.dirName, stateDirMode); err != nil && !errors.Is(err, unix.EEXIST) {
		return hint(err, "make", "directory "+l.dirName)
	}
	l.dir, err = openat(l.parent, l.dirName, flags, 0)
	return hint(vanished(err), "open", "directory "+l.dirName)
}

// stateDirMode is durable.StateDirMode, in the kernel's bits.
const stateDirMode = unix.S_ISVTX | uint32(durable.StateDirMode&fs.ModePerm)

// removeDir removes the directory if it was made here and nothing is in it.
// Whatever hinders it, the lock is free.
func (l *lock) removeDir() {
	var st unix.Stat_t
	if unix.Fstat(l.dir, &st) == nil && st.Mode&0o7777 == stateDirMode {
		_ = unix.Unlinkat(l.parent, l.dirName, unix.AT_REMOVEDIR)
	}
}

func (l *lock) openFile() (err error) {
	// O_NONBLOCK: the opening of a FIFO in its place does not hang.
	l.file, err = openat(l.dir, l.name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("is a symbolic link: %w", err)
	case err != nil:
		return hint(vanished(err), "open", "file")
	}
	var st unix.Stat_t
	if err := unix.Fstat(l.file, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("is not a regular file")
	}
	return nil
}

// inPlace reports whether the open file is the one that the name leads to.
func (l *lock) inPlace() bool {
	var open, named unix.Stat_t
	if unix.Fstat(l.file, &open) != nil || unix.Fstatat(l.dir, l.name, &named, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return open.Dev == named.Dev && open.Ino == named.Ino
}

// unlock removes the file while the lock is still held, so that it removes no
// other holder's.
func (l *lock) unlock() error {
	defer l.close()
	if !l.inPlace() {
		return nil // removed by somebody who takes no lock; another may hold a new one
	}
	err := unix.Unlinkat(l.dir, l.name, 0)
	if err != nil {
		_ = unix.Ftruncate(l.file, 0) // it stays, but names no holder
		return hint(err, "unlock: remove", "lock file "+l.name)
	}
	l.removeDir()
	return nil
}

func (l *lock) close() {
	for _, fd := range []int{l.file, l.dir, l.parent} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing is lost: what was written is only for the time of the lock
		}
	}
}

func vanished(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", errVanished, err)
	}
	return err
}

// hint wraps err, if any, with the remedy.
func hint(err error, op, object string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, object, remedy.File(err))
}

func openat(dir int, path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
