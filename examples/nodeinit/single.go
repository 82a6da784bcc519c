// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func (a *app) mountCgroupCommand() *cobra.Command {
	c := a.mountCommand("mount-cgroup", "Mount cgroup2 with the host's root", stepCgroup, &a.cgroupRoot, func() ledger.Wanter { return a.cgroupMount() })
	a.cgroupFlags(c.Flags())
	return c
}

func (a *app) mountBPFFSCommand() *cobra.Command {
	c := a.mountCommand("mount-bpffs", "Mount the BPF file system", stepBPFFS, &a.bpfRoot, func() ledger.Wanter { return a.bpffsMount() })
	a.bpfMountFlags(c.Flags())
	return c
}

// mountCommand is a command whose argument may be the path to mount at.
func (a *app) mountCommand(name, short, step string, path *string, wants func() ledger.Wanter) *cobra.Command {
	c := &cobra.Command{
		Use: name + " [PATH]", Args: arguments(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 { // an empty one comes from an unset variable
				if err := absolute(args[0]); err != nil {
					return usageError{fmt.Errorf("path %q: %w", args[0], err)}
				}
				*path = args[0]
			}
			return a.single(cmd, step, func() (ledger.Wanter, error) { return wants(), nil })
		},
	}
	a.singleFlags(c)
	return c
}

// systemdSysctl is the unit that applies drop-ins.
const systemdSysctl = "systemd-sysctl.service"

func (a *app) sysctlfixCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "sysctlfix", Args: arguments(0),
		Short: "Write the sysctl drop-in, have systemd apply it, and verify the kernel's values",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.single(cmd, stepSysctl, func() (ledger.Wanter, error) {
				return a.sysctlStep(cmp.Or(a.sysctlUnit, systemdSysctl))
			})
		},
	}
	a.sysctlFlags(c.Flags())
	c.Flags().StringVar(&a.sysctlUnit, "systemd-sysctl-unit", systemdSysctl, "the systemd unit that applies sysctl drop-ins")
	a.singleFlags(c)
	return c
}

func (a *app) singleFlags(c *cobra.Command) {
	a.reportFlags(c.Flags())
	a.stateFlags(c.Flags())
}

// single runs a plan of one step. If nothing is to be done, and the node has no other owner
// to take over from, it takes no lock and writes nothing: it is called at every start of a
// pod.
func (a *app) single(cmd *cobra.Command, name string, wants func() (ledger.Wanter, error)) error {
	return a.reporting(cmd, "apply", []string{name}, func() error {
		if err := a.checkHost(); err != nil {
			return err
		}
		its, err := wants()
		if err != nil {
			return err
		}
		return a.showPlan(cmd.Context(), a.plan(cmd.Context(), bootstrap.Step{Name: name, Wants: its}), (*bootstrap.Plan).Apply)
	})
}
