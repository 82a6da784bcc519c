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
// the exit statuses that it says, and has the node as it was, without an agent's leftovers.
func TestPLAN5_PLAN11_PLAN14_TheManualsCommandsWork(t *testing.T) {
	n := newParallelNode(t)
	n.agentPlugin()
	n.shell("mkdir -p /hostproc /srv/plugins /var/lib/node_exporter /etc/sysctl.d; mount -n --bind /proc /hostproc; cp " + n.plugins + "/* /srv/plugins; ip link set lo up")
	check := n.asItWas()
	n.shell("ip link add cilium_host type veth peer name cilium_net; mkdir -p /run/cilium/state; touch /run/cilium/state/x")
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
	n.shell("rm /var/lib/node_exporter/cilium.prom /etc/sysctl.d/90-[ab].conf /run/*.yaml")
	check()
}

// The manual has each command, step and flag that help shows, with its environment, from the
// tables of the code.
func TestPLAN5_TheManualsTables(t *testing.T) {
	manual, err := os.ReadFile("README.md")
	require.NoError(t, err)
	commands, flags, title := "| command | what it does |\n|---|---|\n", "", ""
	rows, on, all := map[int]main.Row{}, map[int][]string{}, []string{}
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) || c.Parent() == nil {
			return
		}
		commands += "| `" + strings.TrimSuffix(c.Use, " [flags]") + "` | " + c.Short + " |\n"
		for _, f := range main.Flags(c) {
			if f.Shown {
				rows[f.Place], on[f.Place] = f, append(on[f.Place], c.Name())
			}
			if f.Name == "timeout" && f.Shown {
				all = append(all, c.Name())
			}
		}
	})
	plain := strings.NewReplacer("*", "\\*", "|", "\\|", "<", "&lt;", "[", "\\[").Replace
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
		if f.Name == "only" {
			for _, step := range f.Choices {
				require.Contains(t, string(manual), "\n| `"+step+"` | ")
			}
		}
		flags += fmt.Sprintf("| %s | %s | %s | %s |\n", strings.ReplaceAll(f.Usage, "|", "\\|"), strings.Join(f.Variables[1:], ", "), takes, plain(f.Help))
	}
	between := regexp.MustCompile(`(?s)^(.*<!-- commands: .*?-->\n).*(\n## Flags .*<!-- flags -->\n).*(\n## Beside .*)$`).FindStringSubmatch(string(manual))
	require.Len(t, between, 4)
	want := between[1] + commands + between[2] + flags + between[3]
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(manual), "go test -update rewrites README.md")
}
