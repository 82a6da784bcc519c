// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package durable

import (
	"errors"
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

// lockTemp locks a temporary file just made, by a handle that cannot write. It
// reports false where the file is gone: between its making and its lock a
// sweeper may have removed it.
func (d *Dir) lockTemp(name string, w *os.File) (lock *os.File, locked bool, err error) {
	lock, err = d.Open(name)
	if err != nil {
		return nil, false, ignoreGone(err)
	}
	if err := sameFile(w, lock); err != nil {
		return lock, false, err
	}
	if locked, err = flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil || !locked {
		return lock, false, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(lock.Fd()), &st)
	return lock, err == nil && st.Nlink > 0, err
}

func (d *Dir) sweepFile(name string) error {
	f, err := d.Open(name)
	if err != nil {
		return ignoreGone(err)
	}
	defer f.Close()
	locked, err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil || !locked {
		return err
	}
	return ignoreGone(d.at(d.root.Remove(name)))
}

// TryLock takes an exclusive lock on the directory, which ends with d, and
// reports false while somebody else has one. Who may read the directory can take
// one too. A file system without locks lets everybody have it.
func (d *Dir) TryLock() (bool, error) {
	locked, err := flock(d.self, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOLCK) {
		return true, nil
	}
	return locked, err
}

func flock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how)
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
