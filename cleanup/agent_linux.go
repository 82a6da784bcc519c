// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
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
		if locked && err == nil && heldByStrangers(f) {
			locked = false
		}
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
	if err := isFile(f); err != nil {
		return "", false, err // a FIFO may keep whoever reads it waiting
	}
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

// isFile returns an error for what is no regular file, and so no pid file.
func isFile(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is a %s, not a regular file", filemode.Type(info.Mode()))
	}
	return err
}

// heldByStrangers reports whether all locks on f are known to be held by
// processes that are neither root's nor its owner's: whoever may read a pid file
// can lock it, and is not the agent for that. A lock that the kernel does not
// show, such as one of another pid namespace, may be the agent's.
func heldByStrangers(f *os.File) bool {
	var st unix.Stat_t
	locks, err := os.Open("/proc/locks")
	if err != nil || unix.Fstat(int(f.Fd()), &st) != nil {
		return false
	}
	defer locks.Close()
	strangers := 0
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// "1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF"; the device may differ from stat's
		fields := strings.Fields(lines.Text())
		if len(fields) != 8 || !strings.HasSuffix(fields[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			continue
		}
		if strings.HasPrefix(fields[4], "-") || fields[4] == "0" { // it belongs to no process, or to one out of sight
			return false
		}
		uid, err := uidOf(fields[4])
		gone := errors.Is(err, os.ErrNotExist) // a child of it has the lock by now
		if !gone && (err != nil || uid == 0 || uid == int(st.Uid)) {
			return false
		}
		strangers++
	}
	return strangers > 0
}

// uidOf returns the real user of a process. The owner of its directory in /proc
// says nothing: it is root where the process cannot be dumped.
func uidOf(pid string) (int, error) {
	status, err := input.ReadFile(context.Background(), "/proc/"+pid+"/status", input.MaxFlags)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:\t")
	uid, _, _ := strings.Cut(rest, "\t")
	return strconv.Atoi(uid)
}
