// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID names the running boot, as in random(4).
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// mountNamespace names the calling thread's mount namespace, as in namespaces(7).
func mountNamespace() string {
	id, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return "" // this /proc is of another pid namespace
	}
	return id
}

// inMemory reports whether the content of the directory is lost at the next boot.
func inMemory(dir *os.File) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return false, &os.PathError{Op: "statfs", Path: dir.Name(), Err: err}
	}
	switch uint32(st.Type) { // its width is the architecture's
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true, nil
	}
	return false, nil
}

// flock locks the file until the last handle of it is closed. It reports false if
// somebody else has a lock that excludes this one. On a file system without locks
// nobody is excluded.
func flock(f *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOSYS:
			return true, nil
		default:
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}
