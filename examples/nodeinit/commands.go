// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// command is a row of the table of commands.
type command struct {
	use         string // the name, and the arguments
	short, long string
	examples    string
	args        cobra.PositionalArgs // nil: none
	run         func(cmd *cobra.Command, args []string) error
	forever     bool   // --timeout does not end it
	only        string // Cilium's name for apply or uninstall of this step alone
	path        string // the flag that its argument gives
}

// commandTable has all commands but those of cobra.
func (a *app) commandTable() []command {
	return []command{
		{use: "apply", short: "Bring the node to the state that the agent needs", run: a.apply, examples: `
nodeinit apply --host-proc /hostproc --source config-map --plugins /plugins \
    --cni-template none --owner "$POD_UID"
nodeinit apply --only cgroup,bpffs`},
		{use: "check", short: "Print what apply would change; exit status 0 if nothing, 2 if something", run: a.check, examples: `
nodeinit check --config flags.yaml
nodeinit check --host-proc /hostproc --every 5m --report-node`},
		{use: "run [flags] -- COMMAND [ARGUMENT...]", short: "Apply, and then run a command in place of this process", args: afterDash, run: a.applyAndRun,
			long: "Apply, and then run a command in place of this process.\n\nOf the signals that are ignored when this starts, SIGHUP, SIGINT and those that " +
				"stop a process stay ignored for the command. The others, such as SIGPIPE and SIGUSR1, act as by default: the runtime of Go takes them " +
				"over before this program begins, and does not pass on their former state.",
			examples: `
nodeinit run --only cgroup,bpffs -- agent
nodeinit run --drop-capabilities SYS_ADMIN,SYS_PTRACE -- agent`},
		{use: "uninstall", short: "Undo what apply and the other commands changed", run: a.uninstall,
			long: "Undo the recorded changes of apply and the other commands. Of apply's flags it needs only those for directories and places, but " +
				"takes all of them, so that it can be called with the same flags.",
			examples: `
nodeinit uninstall --dry-run
nodeinit uninstall --host-proc /hostproc --all-agents`},
		{use: "build-config", short: "Merge this node's configuration from all sources into one directory", run: a.buildConfig, examples: `
nodeinit build-config --source config-map:kube-system/cilium-config,node
nodeinit build-config --source dir:/etc/agent-config --dest /run/cfg --watch`},
		{use: "explain [KEY...]", short: "Show where each configuration value comes from, what it overrides, and what was denied", args: cobra.ArbitraryArgs, run: a.explain, examples: `
nodeinit explain --source file:config.yaml cluster-name cluster-id`},
		{use: "mount-cgroup [PATH]", short: "Mount cgroup2 with the host's root", run: a.apply, only: stepCgroup, path: "cgroup-root", examples: `
nodeinit mount-cgroup --host-proc /hostproc /run/agent/cgroupv2`},
		{use: "mount-bpffs [PATH]", short: "Mount the BPF file system", run: a.apply, only: stepBPFFS, path: "bpf-root", examples: `
nodeinit mount-bpffs --host-proc /hostproc /sys/fs/bpf`},
		{use: "sysctlfix", short: "Write the sysctl drop-in, have systemd apply it, and verify the kernel's values", run: a.apply, only: stepSysctl, examples: `
nodeinit sysctlfix --sysctl net.ipv4.ip_forward=1 \
    --sysctl-config-file 90-agent.conf`},
		{use: "install-cni", short: "Install CNI plugins, and the network configuration after them", run: a.apply, only: stepCNI, examples: `
nodeinit install-cni --plugins /plugins --cni-chain aws-cni --cni-wait 1m`},
		{use: "uninstall-cni", short: "Remove what install-cni or apply installed, configuration first", run: a.preStop, only: stepCNI,
			long: "Remove the files that install-cni or apply installed, configuration first; before that, the configuration that the agent wrote by itself, if " +
				"--write-cni-conf-when-ready (or the environment) names it. As a preStop hook, like Cilium's: uninstall-cni --keep-plugins --config-dir DIR",
			examples: `
nodeinit uninstall-cni --keep-plugins --config-dir /tmp/cilium/config-map`},
		{use: "guard", short: "Run beside an agent and repair what install-cni or apply installed", run: a.guard, only: stepCNI, forever: true, examples: `
nodeinit guard --plugins /plugins --cni-template none`},
		{use: "cleanup", short: "Show what an agent left on the node, and remove it", run: a.cleanup, examples: `
nodeinit cleanup --all-state --dry-run --output-file plan.yaml
nodeinit cleanup --plan plan.yaml -f`},
		{use: "status", short: "Show the node's state: the last run of each agent, and the recorded, kept and orphaned objects", run: a.status, long: statusLong, examples: `
nodeinit status --host-proc /host/proc --output json`},
		{use: "forget OBJECT...", short: "Drop the records of objects, which stay as they are", args: cobra.ArbitraryArgs, run: a.forget,
			long: "Drop what is recorded of objects for an agent, without undoing it: they stay as they are. The objects are named as status shows them. " +
				"A record that cannot be read is dropped whichever agent it is of.",
			examples: `
nodeinit forget /run/agent/cgroupv2 net.ipv4.ip_forward
nodeinit forget --damaged`},
		{use: "release --agent NAME", short: "Give up the records of an agent that has gone, without undoing them", run: a.release,
			long: "Give up what is recorded for an agent that has gone, whatever its owner and its objects. Objects that other agents want are " +
				"then theirs; those that none of them wants are listed, and left in place for good.",
			examples: `
nodeinit release --agent acme`},
		{use: "version", short: "Print the version", run: a.printVersion, examples: `
nodeinit version`},
		{use: "demo", short: "Show everything at work on a throw-away node made of namespaces (needs root)", run: a.demo, forever: true, examples: `
sudo nodeinit demo`},
	}
}

func (row command) name() string { return strings.Fields(row.use)[0] }

// cobra returns the command with its flags.
func (a *app) cobra(row command) *cobra.Command {
	c := &cobra.Command{Use: row.use, Short: row.short, Long: row.long, Example: row.examples, Args: row.args, RunE: row.run}
	switch {
	case c.Name() == "cleanup":
		c.Aliases = []string{"post-uninstall-cleanup"}
	case row.path != "":
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			_ = c.Flags().Set(row.path, args[0]) // checked with the others
			return noArguments(c, args[1:])
		}
	}
	if c.Args == nil {
		c.Args = noArguments
	}
	a.register(c, c.Flags(), false)
	return c
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

func afterDash(c *cobra.Command, args []string) error {
	if len(args) == 0 || c.ArgsLenAtDash() != 0 {
		return usage("give the command to run after --")
	}
	return nil
}

// begin prepares the fields for the command that cobra has found.
func (a *app) begin(c *cobra.Command, _ []string) error {
	a.begun, a.name = true, c.Name()
	a.setDefaults()
	if c.HasParent() && c.Parent().Name() == "completion" {
		return nil // the shell that reads it may have another environment than the node
	}
	for _, row := range a.commandTable() {
		if row.name() == a.name {
			a.row = row
		}
	}
	if err := a.complete(c.Context()); err != nil {
		return err
	}
	if !a.row.forever && !a.watch && a.every == 0 {
		ctx, stop := a.inTime(c.Context())
		a.cleanups = append(a.cleanups, stop)
		c.SetContext(ctx)
	}
	return nil
}
