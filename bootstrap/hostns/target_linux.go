// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// target is one open namespace file.
type target struct {
	ns        string // the name of its kind
	path      string
	fd        int
	inherited bool // of the caller's own thread, not of the process to enter
}

var cloneFlags = map[string]int{
	"mnt":    unix.CLONE_NEWNS,
	"cgroup": unix.CLONE_NEWCGROUP,
	"net":    unix.CLONE_NEWNET,
	"uts":    unix.CLONE_NEWUTS,
	"ipc":    unix.CLONE_NEWIPC,
}

// openTargets opens the namespaces of the process and, for the other kinds,
// those of the calling thread: a thread that is itself locked in a namespace
// (nested calls of Do) passes it on, whereas a new thread would have the process's.
func openTargets(procDir string, namespaces []string) ([]target, error) {
	dir, err := openProcess(procDir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	targets := make([]target, 0, len(kinds))
	for _, ns := range kinds {
		if !slices.Contains(namespaces, ns) {
			if t, ok := openOwn(ns); ok {
				targets = append(targets, t)
			}
			continue
		}
		t, err := openTarget(dir, procDir, ns)
		if err != nil {
			closeTargets(targets)
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func closeTargets(targets []target) {
	for _, t := range targets {
		_ = unix.Close(t.fd) // read-only: nothing is lost
	}
}

// openOwn opens a namespace of the calling thread. It cannot if /proc is not
// mounted; the new thread then has the process's.
func openOwn(ns string) (target, bool) {
	t := target{ns: ns, path: "/proc/thread-self/ns/" + ns, inherited: true}
	var err error
	t.fd, err = openRetry(unix.AT_FDCWD, t.path, unix.O_RDONLY)
	return t, err == nil
}

// isOwn reports whether the calling thread is in the namespace already.
func (t target) isOwn() bool {
	var want, have unix.Stat_t
	if unix.Fstat(t.fd, &want) != nil || unix.Stat("/proc/thread-self/ns/"+t.ns, &have) != nil {
		return false
	}
	return want.Dev == have.Dev && want.Ino == have.Ino
}

// openProcess opens the directory of a process.
func openProcess(procDir string) (int, error) {
	dir, err := openRetry(unix.AT_FDCWD, procDir, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		if unix.Faccessat(dir, "ns", unix.F_OK, 0) == nil {
			return dir, nil
		}
		_ = unix.Close(dir)
		err = notProcess(procDir)
	} else if errors.Is(err, unix.ENOENT) && isProcFS(filepath.Dir(procDir)) {
		err = fmt.Errorf("no such process: %w", err)
	} else if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w: is the host's /proc mounted there?", err)
	}
	return -1, notEntered(procDir, "open", err, "")
}

func notProcess(procDir string) error {
	if isProcFS(procDir) {
		return fmt.Errorf("not the directory of a running process in a proc file system (as /hostproc/1 is): no ns inside: %w", unix.ENOENT)
	}
	return fmt.Errorf("not in a proc file system: no ns inside: %w", unix.ENOENT)
}

func isProcFS(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && int64(st.Type) == unix.PROC_SUPER_MAGIC
}

func openTarget(dir int, procDir, ns string) (target, error) {
	t := target{ns: ns, path: filepath.Join(procDir, "ns", ns)}
	var err error
	if t.fd, err = openRetry(dir, "ns/"+ns, unix.O_RDONLY|unix.O_NONBLOCK); err != nil {
		return t, t.fail("open", openCause(dir, ns, err))
	}
	var st unix.Statfs_t
	err = unix.Fstatfs(t.fd, &st)
	if err == nil && int64(st.Type) == unix.NSFS_MAGIC {
		return t, nil
	}
	_ = unix.Close(t.fd)
	if err == nil && int64(st.Type) == unix.PROC_SUPER_MAGIC {
		return t, t.fail("open", unix.EACCES) // Linux 5.10 opens the directory of the link that it does not follow
	}
	return t, t.fail("open", errors.Join(errors.New("not a namespace file"), err))
}

// openCause finds out why a namespace file does not open.
func openCause(dir int, ns string, err error) error {
	var st unix.Stat_t
	lstat := func(name string) error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) }
	switch {
	case lstat("ns") != nil:
		return fmt.Errorf("the process is gone: %w", err)
	case !errors.Is(err, unix.ENOENT):
		return err
	case lstat("ns/"+ns) == nil:
		return fmt.Errorf("the process has ended: %w", err) // a zombie has the link, but no namespace behind it
	case lstat("ns/mnt") == nil:
		return fmt.Errorf("the kernel has no %s namespaces: %w", ns, err)
	}
	return err
}

func openRetry(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
