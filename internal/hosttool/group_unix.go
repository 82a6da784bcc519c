// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package hosttool

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// killGroup lets a program that runs out of time go with all its children.
func killGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGKILL) }
}
