// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
)

// runCommand prepares the node, and then the process is another program: an agent
// that knows nothing of this needs no init container.
func (a *app) runCommand() *cobra.Command {
	var drop []string
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARGUMENT...]",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return usageError{errors.New("give the command to run after --")}
			}
			return nil
		},
		Short: "Apply, and then run a command in place of this process",
		Long: `Apply, and then run a command in place of this process.

Of the signals that are ignored when this starts, SIGHUP, SIGINT and those that
stop a process stay ignored for the command. The others, such as SIGPIPE and
SIGUSR1, act as by default: the runtime of Go takes them over before this program
begins, and does not pass on their former state.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := handover{args: args, told: make(chan os.Signal, 1)}
			signal.Notify(h.told, toEnd()...)
			a.stdout, a.terminal = a.stderr, nil // the command has a use for its own
			err := a.reporting(cmd, "apply", a.stepsToRun(), func() (err error) {
				if h.drop, err = capabilityNumbers(drop); err != nil {
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
		},
	}
	a.planFlags(c)
	c.Flags().StringSliceVar(&drop, "drop-capabilities", nil, "capabilities that the command does not get, such as SYS_ADMIN,SYS_CHROOT,SYS_PTRACE; needs CAP_SETPCAP")
	return c
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
