// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help in columns: that of a terminal by default.
const helpWidth = 80

// sections are the groups of flags in help, each in its order. A flag that is in none of
// them comes in the last.
var sections = []struct{ title, flags string }{
	{"where", "host-proc here config node-name agent owner state-dir"},
	{"what", "only skip ignore-preflight all-state bpf-state netns xfrm eni-tables aws-leftovers ownership exception plan " +
		"cgroup-root cgroup-root-key cgroup-repair bpf-root bpf-fallback bpf-shared kernel-modules " +
		"sysctl sysctl-conf-dir sysctl-config-file systemd-sysctl-unit wait-for-kube-proxy drop-capabilities"},
	{"CNI", "plugins optional-plugins plugins-elsewhere overwrite-plugins overwrite-loopback keep-plugins " +
		"cni-conf cni-conf-key cni-template cni-chain cni-chain-in-place cni-version cni-log-file cni-debug cni-exclusive cni-backup-suffix " +
		"cni-conf-name custom-cni-conf write-cni-conf-when-ready config-dir " +
		"cni-bin-dir also-cni-bin-dir cni-conf-dir runtime-endpoint cni-wait wait-loaded"},
	{"configuration", "source dest watch strict allow-config-keys deny-config-keys k8s-namespace enable-k8s k8s-kubeconfig-path " +
		"k8s-api-server-urls k8s-api-server enable-k8s-host-firewall-bypass k8s-retry-spread k8s-client-qps k8s-client-burst " +
		"k8s-client-connection-timeout k8s-client-connection-keep-alive"},
	{"safety", "dry-run force while-alive damaged any-owner all-agents accept-kept take-over override adopt lock-timeout timeout"},
	{"output", "output output-file timeline report-node report-metrics every show-values log-format log-level no-descriptions version help"},
}

// examples are two command lines of each command.
var examples = map[string]string{
	"nodeinit": `
nodeinit apply --help
sudo nodeinit demo`,
	"nodeinit apply": `
nodeinit apply --host-proc /hostproc --source config-map --plugins /plugins \
    --cni-template none --owner "$POD_UID"
nodeinit apply --only cgroup,bpffs`,
	"nodeinit check": `
nodeinit check --config flags.yaml
nodeinit check --host-proc /hostproc --every 5m --report-node`,
	"nodeinit run": `
nodeinit run --only cgroup,bpffs -- agent
nodeinit run --drop-capabilities SYS_ADMIN,SYS_PTRACE -- agent`,
	"nodeinit uninstall": `
nodeinit uninstall --dry-run
nodeinit uninstall --host-proc /hostproc --all-agents`,
	"nodeinit build-config": `
nodeinit build-config --source config-map:kube-system/cilium-config,node
nodeinit build-config --source dir:/etc/agent-config --dest /run/cfg --watch`,
	"nodeinit explain": `
nodeinit explain --source config-map,node
nodeinit explain --source file:config.yaml cluster-name cluster-id`,
	"nodeinit mount-cgroup": `
nodeinit mount-cgroup
nodeinit mount-cgroup --host-proc /hostproc /run/agent/cgroupv2`,
	"nodeinit mount-bpffs": `
nodeinit mount-bpffs
nodeinit mount-bpffs --host-proc /hostproc /sys/fs/bpf`,
	"nodeinit sysctlfix": `
nodeinit sysctlfix --host-proc /hostproc
nodeinit sysctlfix --sysctl net.ipv4.ip_forward=1 \
    --sysctl-config-file 90-agent.conf`,
	"nodeinit cleanup": `
nodeinit cleanup --all-state --dry-run --output-file plan.yaml
nodeinit cleanup --plan plan.yaml -f`,
	"nodeinit install-cni": `
nodeinit install-cni --plugins /plugins --cni-template none
nodeinit install-cni --plugins /plugins --cni-chain aws-cni --cni-wait 1m`,
	"nodeinit uninstall-cni": `
nodeinit uninstall-cni --dry-run
nodeinit uninstall-cni --keep-plugins --config-dir /tmp/cilium/config-map`,
	"nodeinit guard": `
nodeinit guard --plugins /plugins --cni-template none
nodeinit guard --plugins /plugins --cni-conf agent.conflist`,
	"nodeinit status": `
nodeinit status
nodeinit status --host-proc /host/proc --output json`,
	"nodeinit forget": `
nodeinit forget /run/agent/cgroupv2 net.ipv4.ip_forward
nodeinit forget --damaged`,
	"nodeinit release": `
nodeinit release --agent acme
nodeinit release --agent acme --force`,
	"nodeinit demo": `
sudo nodeinit demo
sudo nodeinit demo > demo.txt`,
}

// unused are the flags that commands and their subcommands accept, as all do, but do not
// use.
var unused = map[string]string{
	"nodeinit build-config": "host-proc here",
	"nodeinit completion":   "host-proc here config timeout log-format log-level",
	"nodeinit demo":         "host-proc here config timeout log-level",
	"nodeinit explain":      "host-proc here dest",
	"nodeinit help":         "host-proc here config timeout log-level",
}

// uses reports whether a command uses a flag that it has.
func uses(c *cobra.Command, flag string) bool {
	for ; c != nil; c = c.Parent() {
		if slices.Contains(strings.Fields(unused[c.CommandPath()]), flag) {
			return false
		}
	}
	return true
}

// help is the whole help of a command.
func help(c *cobra.Command) string {
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		fmt.Fprintf(&b, "%s\n\n", wrapped(paragraph, "", helpWidth))
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", c.UseLine())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n", c.CommandPath())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-14s%s\n", sub.Name(), strings.TrimSpace(wrapped(sub.Short, strings.Repeat(" ", 16), helpWidth)))
		}
	}
	if lines := examples[c.CommandPath()]; lines != "" {
		fmt.Fprintf(&b, "\nExamples:%s\n", strings.ReplaceAll(lines, "\n", "\n  "))
	}
	if c.Flags().Lookup("only") != nil {
		fmt.Fprintf(&b, "\nSteps, for --only and --skip, in their order:\n%s\n", wrapped(strings.Join(steps(c), ", ")+"; and modules, before sysctl, with --kernel-modules", "  ", helpWidth))
	}
	writeFlags(&b, c)
	fmt.Fprintf(&b, "\nExit status:\n  %s\n", strings.Join(statuses(c), "\n  "))
	return b.String()
}

// steps are the names of a command's steps.
func steps(c *cobra.Command) []string {
	if c.Flags().Lookup("ignore-preflight") == nil {
		return stepNames
	}
	return append([]string{stepPreflight}, stepNames...)
}

// statuses explains the exit statuses of a command.
func statuses(c *cobra.Command) []string {
	all := []string{"0   success", "1   failure; standard error has a line for each cause"}
	if c.Name() == "run" {
		all[0] = "that of the command once it runs; before that:"
	}
	switch {
	case c.Parent() == nil:
		all = append(all, "2   check, status, uninstall --dry-run: there is something to do", "3   the node has another owner")
	case c.Name() == "check" || c.Name() == "status":
		all = append(all, "2   there is something to do")
	case strings.HasPrefix(c.Name(), "uninstall"):
		all = append(all, "2   --dry-run has found something to undo")
	}
	if c.Flag("owner") != nil {
		all = append(all, "3   the node has another owner")
	}
	return append(all, "64  usage error; nothing was done")
}

// writeFlags writes the flags that a command shows, by section.
func writeFlags(b *strings.Builder, c *cobra.Command) {
	sorted := make([][]*pflag.Flag, len(sections))
	for _, flags := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		flags.VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && uses(c, flag.Name) {
				i, _ := place(flag.Name)
				sorted[i] = append(sorted[i], flag)
			}
		})
	}
	for i, flags := range sorted {
		if len(flags) > 0 {
			fmt.Fprintf(b, "\nFlags, %s:\n", sections[i].title)
		}
		sort.SliceStable(flags, func(a, b int) bool { return order(flags[a].Name) < order(flags[b].Name) })
		for _, flag := range flags {
			writeFlag(b, flag)
		}
	}
}

// place returns the section of a flag, and its position in that.
func place(flag string) (section, at int) {
	for i, s := range sections {
		if at := slices.Index(strings.Fields(s.flags), flag); at >= 0 {
			return i, at
		}
	}
	return len(sections) - 1, -1
}

func order(flag string) int { _, at := place(flag); return at }

func writeFlag(b *strings.Builder, flag *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(flag)
	value = strings.Replace(value, "stringArray", "strings", 1)
	if !slices.Contains([]string{"", "[]", "0", "0s", "false"}, flag.DefValue) {
		usage += " (default " + flag.DefValue + ")"
	}
	name := "    --" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", --" + flag.Name
	}
	fmt.Fprintf(b, "  %s\n%s\n", strings.TrimRight(name+" "+value, " "), wrapped(usage, strings.Repeat(" ", 10), helpWidth))
}

// wrapped is text in lines of at most width columns, each behind indent.
func wrapped(text, indent string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch size := len([]rune(word)); {
		case column == 0:
			b.WriteString(indent + word)
			column = len(indent) + size
		case column+1+size > width:
			b.WriteString("\n" + indent + word)
			column = len(indent) + size
		default:
			b.WriteString(" " + word)
			column += 1 + size
		}
	}
	return b.String()
}
