// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
)

// applyAndRun prepares the node, and then the process is another program: an agent
// that knows nothing of this needs no init container.
func (a *app) applyAndRun(cmd *cobra.Command, args []string) error {
	h := handover{args: args, told: make(chan os.Signal, 1)}
	signal.Notify(h.told, toEnd()...)
	if a.width = 0; !a.quiet {
		a.stdout = a.stderr // the command has a use for its own
	}
	err := a.reporting(cmd, "apply", a.stepsToRun(), func() (err error) {
		if h.drop, err = capabilityNumbers(a.drop); err != nil {
			return err
		}
		if h.path, err = exec.LookPath(args[0]); err != nil {
			return err // before anything is changed
		}
		return a.runPlan(cmd.Context(), (*bootstrap.Plan).Apply)
	})
	if err == nil {
		a.next = h.become
	}
	return err
}

// handover is a command that this process is to become.
type handover struct {
	path string
	args []string
	drop []int // numbers of capabilities
	told chan os.Signal
}

// become does not return unless it fails. The ledger is closed and the lock free by
// then; every descriptor of ours is closed by the kernel.
func (h handover) become() error {
	signal.Stop(h.told) // those from here on end the process; unlike Reset, it waits for those before
	select {
	case <-h.told:
		return fmt.Errorf("%s is not run: asked to end", h.path)
	default:
	}
	if err := execute(h.path, h.args, os.Environ(), h.drop); err != nil {
		return fmt.Errorf("run %s: %w", h.path, err)
	}
	return nil
}

// capabilityNames are those of capabilities(7), by number.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
	SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
	AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

func capabilityNumbers(names []string) (numbers []int, err error) {
	for _, name := range names {
		number := slices.Index(capabilityNames, strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
		if number < 0 {
			return nil, fmt.Errorf("%q is not the name of a capability", name)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
