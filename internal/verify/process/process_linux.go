// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package process

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// CPU returns the processor time that the process has used so far.
func (p *Process) CPU() (time.Duration, error) {
	clock := ^p.cmd.Process.Pid<<3 | 2 // clock_getcpuclockid(3) of another process
	var used unix.Timespec
	if err := unix.ClockGettime(int32(clock), &used); err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.name, err)
	}
	return time.Duration(used.Nano()), nil
}
