// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SyncDir makes the entries of dir durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// lockTemp locks a temporary file just made, by a handle that cannot write. It
// reports false where the file is gone: between its making and its lock a
// sweeper may have removed it.
func lockTemp(w *os.File) (lock *os.File, locked bool, err error) {
	lock, err = os.OpenFile(w.Name(), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false, ignoreGone(err)
	}
	if locked, err = flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil || !locked {
		return lock, false, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(lock.Fd()), &st)
	return lock, err == nil && st.Nlink > 0, err
}

// lockLinks lets Symlink say that it is at work in dir: a link itself cannot
// be locked.
func lockLinks(dir string) (func(), error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if _, err := flock(f, unix.LOCK_SH); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func sweepFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer f.Close()
	locked, err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil || !locked {
		return err
	}
	return ignoreGone(os.Remove(path))
}

func sweepLink(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	locked, err := flock(dir, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil || !locked {
		return err
	}
	return ignoreGone(os.Remove(path))
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
