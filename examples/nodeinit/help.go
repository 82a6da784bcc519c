// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/bootstrap"
)

// help is the whole help of a command.
func (a *app) help(c *cobra.Command) string {
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		fmt.Fprintf(&b, "%s\n\n", bootstrap.Wrap(paragraph, "", columns))
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", c.UseLine())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n", c.CommandPath())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-14s%s\n", sub.Name(), strings.TrimSpace(bootstrap.Wrap(sub.Short, strings.Repeat(" ", 16), columns)))
		}
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:%s\n", strings.ReplaceAll(c.Example, "\n", "\n  "))
	}
	if c.Flag("only") != nil {
		fmt.Fprintf(&b, "\nSteps, for --only and --skip, in their order:\n%s\n", bootstrap.Wrap(stepsHelp, "  ", columns))
	}
	a.writeFlags(&b, c)
	b.WriteString(exitHelp)
	return b.String()
}

var stepsHelp = strings.Join(stepNames, ", ") + "; before them preflight, in check alone, and before sysctl modules, with --kernel-modules"

const exitHelp = `
Exit status:
  0   success; run: that of the command
  1   failure; standard error has a line for each cause
  2   check, status, uninstall --dry-run: there is something to do
  3   the node has another owner
  64  usage error; nothing was done
`

// writeFlags writes the flags that a command shows, by group. Those of cobra are the last.
func (a *app) writeFlags(b *strings.Builder, c *cobra.Command) {
	for i, g := range a.groups {
		title := fmt.Sprintf("\nFlags, %s:\n", g.title)
		for _, f := range g.flags {
			if f.shows(c) {
				b.WriteString(title)
				f.writeHelp(b)
				title = ""
			}
		}
		if i < len(a.groups)-1 {
			continue
		}
		b.WriteString(title)
		c.LocalFlags().VisitAll(func(pf *pflag.Flag) {
			if _, ours := pf.Value.(*flag); !ours {
				writeFlag(b, pf.Shorthand, pf.Name, "", pf.Usage)
			}
		})
	}
}

// writeHelp writes the flag with its value by default and its variables in the environment.
func (f *flag) writeHelp(b *strings.Builder) {
	value, usage := f.Type(), f.help
	if value == "bool" {
		value = ""
	}
	if f.def != "" {
		usage += " (default " + f.def + ")"
	}
	writeFlag(b, f.short, f.name, value, usage+" [$"+strings.Join(f.variables(), ", $")+"]")
}

func writeFlag(b *strings.Builder, short, name, value, usage string) {
	if short != "" {
		short = "-" + short + ","
	}
	line := fmt.Sprintf("  %-3s --%s %s", short, name, value)
	fmt.Fprintf(b, "%s\n%s\n", strings.TrimRight(line, " "), bootstrap.Wrap(usage, strings.Repeat(" ", 10), columns))
}
