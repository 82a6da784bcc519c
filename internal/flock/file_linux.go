// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// lock is an open lock file. Its directory is kept open too, so that unlock acts on the
// same file in any mount namespace.
type lock struct {
	dir  *durable.Dir
	name string
	file *os.File
}

// open opens the file, and creates it if it is missing.
func open(path string) (*lock, error) {
	dir, err := durable.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (create it, or name another)", err)
	}
	if err != nil {
		return nil, remedy.File(err)
	}
	l := &lock{dir: dir, name: filepath.Base(path)}
	if l.file, err = dir.OpenOrCreate(l.name, 0o600); err == nil {
		err = l.private()
	}
	if err != nil {
		l.close()
		return nil, remedy.File(err)
	}
	return l, nil
}

// private returns an error if other users may open the file and so hold the lock for
// ever, or if the file has another name.
func (l *lock) private() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return nil
	case int(st.Uid) != os.Geteuid():
		return code.Errorf(code.HostUntrusted, "it belongs to uid %d, which could hold it for ever (remove it)", st.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return code.Errorf(code.HostUntrusted, "it has mode %04o, so other users could hold it for ever (chmod 600 it)", info.Mode().Perm())
	case st.Nlink > 1:
		return code.New(code.HostUntrusted, "it has hard links (remove it)")
	}
	return nil
}

// inPlace reports whether the path still leads to the open file.
func (l *lock) inPlace() bool {
	open, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := l.dir.Lstat(l.name)
	return err == nil && os.SameFile(open, named)
}

// unlock does not remove the file: another process may already have it open, and
// would no longer exclude a process that made a new one.
func (l *lock) unlock() error {
	_ = l.file.Truncate(0) // it no longer names a holder; other processes only read it
	l.close()
	return nil
}

func (l *lock) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing is lost: the content is only of use while the lock is held
	}
	_ = l.dir.Close()
}

// flock takes the lock if it is free.
func (l *lock) flock() error {
	locked, err := durable.TryFlock(l.file)
	switch {
	case err != nil:
		return err
	case !locked:
		return ErrHeld
	case !l.inPlace():
		return errVanished
	}
	return nil
}
