// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process starts a process in namespaces of its own, like a host's as seen from a
// container, and returns its directory in /proc. The process waits until the test ends.
// It is in the cgroup at that path, which is the root of its cgroup namespace; if the
// path is empty, in the test's.
func Process(t TB, ns Namespace, cgroup string) (procDir string) {
	t.Helper()
	Root(t)
	cmd := exec.Command("cat") // ends with its standard input, also if this process is killed
	// unshare makes a new mount namespace's mounts private, clone does not.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: uintptr(cloneFlags(ns))}
	if ns&Peers != 0 {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS
	}
	if cgroup != "" {
		dir, err := os.Open(cgroup)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("process in namespaces %#x: %v", cloneFlags(ns), err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // the test may have ended it
	})
	return filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
}
