// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// clockTick is USER_HZ, which is 100 on every architecture that Go runs on.
const clockTick = time.Second / 100

// cpu is the processor time that the process has used: utime and stime of
// proc_pid_stat(5).
func (p *process) cpu() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d: unknown form of /proc/PID/stat", p.cmd.Process.Pid)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("%d: /proc/PID/stat: %w", p.cmd.Process.Pid, err)
	}
	return time.Duration(user+system) * clockTick, nil
}
