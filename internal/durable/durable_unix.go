// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlock keeps the opening of a FIFO from waiting for its other end.
const nonBlock = unix.O_NONBLOCK

// ownedByUs reports whether info is of a file of this process's user.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// mkdir makes the directory with a sticky bit from its first moment, which
// os.Root refuses.
func (d *Dir) mkdir(name string, mode fs.FileMode) error {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	for {
		switch err := unix.Mkdirat(int(d.self.Fd()), name, bits); err {
		case nil:
			return nil
		case unix.EINTR:
		default:
			return &fs.PathError{Op: "mkdir", Path: d.Path(name), Err: err}
		}
	}
}

// Sync makes the entries of the directory durable.
func (d *Dir) Sync() error {
	if err := d.self.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// lockTemp locks a temporary file just made, by a read-only handle. It reports false if
// the file is gone: a sweeper may have removed it before it was locked.
func (d *Dir) lockTemp(name string, w *os.File) (lock *os.File, locked bool, err error) {
	lock, err = d.Open(name)
	if err != nil {
		return nil, false, IgnoreGone(err)
	}
	if err := sameFile(w, lock); err != nil {
		return lock, false, err
	}
	if locked, err = TryFlock(lock); err != nil || !locked {
		return lock, false, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(lock.Fd()), &st)
	return lock, err == nil && st.Nlink > 0, err
}

func (d *Dir) sweepFile(name string) error {
	f, err := d.Open(name)
	if err != nil {
		return IgnoreGone(err)
	}
	defer f.Close()
	locked, err := TryFlock(f)
	if err != nil || !locked {
		return err
	}
	return IgnoreGone(d.at(d.root.Remove(name)))
}

// TryLock takes an exclusive lock in the directory, and returns nil while another
// process has it. The lock is on a directory called name, which exists only meanwhile, or
// until the next lock if the process is killed. A process that can open a file can lock
// it; this one only the process's own user and root can open. On a file system without
// locks, every process gets it.
func (d *Dir) TryLock(name string) (unlock func() error, err error) {
	if err := d.mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock, err := d.OpenDir(name)
	if err != nil {
		return nil, IgnoreGone(err)
	}
	locked, err := d.lockDir(name, lock)
	if err != nil || !locked {
		return nil, errors.Join(err, lock.Close())
	}
	return func() error { return errors.Join(d.unlinkDir(name, lock), lock.Close()) }, nil
}

// lockDir locks the directory called name, unless its last owner has removed it.
func (d *Dir) lockDir(name string, lock *Dir) (bool, error) {
	info, err := lock.Stat()
	if err != nil {
		return false, err
	}
	if !ownedByUs(info) || info.Mode().Perm()&0o077 != 0 {
		return false, fmt.Errorf("other users could hold the lock %s, with mode %s: remove it", lock.Path(), info.Mode())
	}
	locked, err := TryFlock(lock.self)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOLCK) {
		locked, err = true, nil
	}
	if err != nil || !locked {
		return false, err
	}
	now, err := d.Lstat(name)
	return err == nil && os.SameFile(info, now), IgnoreGone(err)
}

// unlinkDir removes the empty directory called name, if it still is this one.
func (d *Dir) unlinkDir(name string, is *Dir) error {
	info, err := is.Stat()
	if err != nil {
		return err
	}
	now, err := d.Lstat(name)
	if err != nil || !os.SameFile(info, now) {
		return IgnoreGone(err)
	}
	if err := unix.Unlinkat(int(d.self.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "rmdir", Path: d.Path(name), Err: err}
	}
	return nil
}

// TryFlock locks an open file or directory, unless another process has locked it.
func TryFlock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}
