// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// below calls f, which makes a system call that takes no descriptor, with a path that
// leads to name in the open directory dir, or, with ".", to dir itself. No other process
// can exchange any part of the path except the name, which f must not follow.
func below(dir int, name string, f func(path string) error) error {
	at := fmt.Sprintf("/proc/thread-self/fd/%d", dir)
	if unix.Access(at, unix.F_OK) == nil {
		return f(at + "/" + name)
	}
	return inDir(dir, func() error { return f(name) })
}

// inDir calls f with the open directory as the thread's working directory, for use if
// /proc does not show this process, as on a node that was entered from outside its pid
// namespace. The thread has a working directory of its own from then on, as has every
// thread that has entered a mount namespace.
func inDir(dir int, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	back, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open the working directory", err)
	}
	defer unix.Close(back)
	if err := unix.Fchdir(dir); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	return errors.Join(f(), os.NewSyscallError("fchdir", unix.Fchdir(back)))
}
