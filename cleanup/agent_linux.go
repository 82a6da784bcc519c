// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/filemode"
)

func (o Ownership) agentAlive() error {
	for _, path := range o.PidFiles {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cleanup: look for a running agent: %w", err)
		}
		pid, locked, err := lockHolder(f)
		err = errors.Join(isFile(f), err)
		f.Close()
		if err != nil {
			return fmt.Errorf("cleanup: look for a running agent: lock on %s: %w", path, err)
		}
		if locked {
			return fmt.Errorf("cleanup: %w: %s is locked by process %s: stop it first", ErrAgentAlive, path, pid)
		}
	}
	return nil
}

// lockHolder reports whether somebody holds a lock on f, of either kind, and
// the pid that the file names.
func lockHolder(f *os.File) (pid string, locked bool, err error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return "", false, err
	}
	locked = lock.Type != unix.F_UNLCK
	if !locked {
		// The shared lock goes with the descriptor.
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return "", false, err
		}
		locked = err != nil
	}
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if pid = strings.TrimSpace(string(text)); pid == "" || err != nil {
		pid = "(unknown)"
	}
	return pid, locked, nil
}

// isFile is an error for what is no regular file, and so no agent's.
func isFile(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is a %s, not a regular file", filemode.Type(info.Mode()))
	}
	return err
}
