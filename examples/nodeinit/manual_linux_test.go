// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
)

// An operator who types all that the manual has for a node, from its first line to its last, sees
// the exit statuses that it says, and has a node as it was.
func TestPLAN5_TheManualsCommandsWork(t *testing.T) {
	n := newParallelNode(t)
	n.agentPlugin()
	n.shell("mkdir -p /hostproc /srv/plugins /var/lib/node_exporter; mount -n --bind /proc /hostproc; cp " + n.plugins + "/* /srv/plugins")
	n.left()
	n.shell("ip link set lo up")
	script := "export SLIPWAY_K8S_API_SERVER_URLS=http://localhost:" + newAPIServer(t, n).port + " PATH=$PATH:" + filepath.Dir(binary) + "\ncd /run\n"
	manual, err := os.ReadFile("README.md")
	require.NoError(t, err)
	status := regexp.MustCompile(`(?m)^(.*\S) +# exit status (\d).*$`)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(manual), -1) {
		commands := strings.ReplaceAll(block[1], "--every 5m", "--every 0")
		if strings.Contains(commands, "/hostproc") { // as in a container
			commands = "unshare --mount sh -eu <<'END'\n" + commands + "END\n"
		}
		script += status.ReplaceAllString(commands, "set +e; $1; test $$? = $2 || exit; set -e")
	}
	said := n.outcome(n.Command("sh", "-eux", "-c", script))
	require.Zero(t, said.code, said.stderr)
	n.shell("test ! -e /sys/class/net/cilium_host")
	n.shell("test -s /var/lib/node_exporter/cilium.prom")
}

// The manual has each command and flag that help shows, with its environment, from the tables of
// the code.
func TestPLAN5_TheManualsTables(t *testing.T) {
	manual, err := os.ReadFile("README.md")
	require.NoError(t, err)
	commands, rows, on, all := "| command | what it does |\n|---|---|\n", map[int]main.Row{}, map[int][]string{}, []string{}
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) || c.Parent() == nil {
			return
		}
		commands += "| `" + strings.TrimSuffix(c.Use, " [flags]") + "` | " + c.Short + " |\n"
		for _, f := range main.Flags(c) {
			if f.Shown {
				rows[f.Place], on[f.Place] = f, append(on[f.Place], c.Name())
			}
			if f.Shown && f.Name == "timeout" {
				all = append(all, c.Name())
			}
			if c.Name() == "apply" && f.Name == "only" {
				for _, step := range f.Choices {
					require.Contains(t, string(manual), "\n| `"+step+"` | ")
				}
			}
		}
	})
	flags, title := "", ""
	for _, place := range slices.Sorted(maps.Keys(rows)) {
		f, takes := rows[place], strings.Join(on[place], ", ")
		if f.Group != title {
			title = f.Group
			flags += "\n**" + title + "**\n\n| flag | environment | commands | |\n|---|---|---|---|\n"
		}
		if without := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(on[place], c) }); len(without) == 0 {
			takes = "all"
		} else if len(without) < 4 {
			takes = "all but " + strings.Join(without, ", ")
		}
		flags += fmt.Sprintf("| %s | %s | %s | %s |\n", usage(f), strings.Join(f.Variables[1:], ", "), takes, cell(f.Help, f.Default))
	}
	between := regexp.MustCompile(`(?s)(<!-- commands: .*?-->\n).*?(\n## .*?<!-- flags -->\n).*?(\n## Beside )`)
	require.Regexp(t, between, string(manual))
	want := between.ReplaceAllStringFunc(string(manual), func(old string) string {
		parts := between.FindStringSubmatch(old)
		return parts[1] + commands + parts[2] + flags + parts[3]
	})
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(manual), "go test -update rewrites README.md")
}

// usage is how the manual has a flag.
func usage(f main.Row) string {
	text := "`--" + f.Name
	if f.Short != "" {
		text = "`-" + f.Short + "`, " + text
	}
	if f.Type != "bool" {
		text += " " + strings.ReplaceAll(f.Type, "|", "\\|")
	}
	return text + "`"
}

// cell is a help as a cell of a table.
func cell(help, byDefault string) string {
	if byDefault != "" {
		help += " (default " + byDefault + ")"
	}
	return strings.NewReplacer("*", "\\*", "|", "\\|", "<", "&lt;", "[", "\\[").Replace(help)
}
