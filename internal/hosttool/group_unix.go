// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package hosttool

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// killGroup makes a timeout kill a program with all its children.
func killGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGKILL) }
}
