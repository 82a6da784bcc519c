// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
)

// Every command that acts on the host enters it through --host-proc: where that shows no
// process, nothing is done instead.
func TestPLAN10_EachCommandEntersTheHost(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.left()
	n.shell("mkdir /run/proc")
	before := n.state()
	given := map[string][]string{
		"apply": n.args("apply"), "check": n.args("check"), "run": n.args("run", "--", "true"), "install-cni": {"install-cni", "--plugins", n.plugins},
		"guard": n.args("guard"), "cleanup": {"cleanup", "--all-state", "-f"}, "forget": {"journal", "forget", "/x"}, "release": {"journal", "release", "--agent", "other"},
	}
	var acting []string
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) || slices.Contains([]string{"nodeinit", "build-config", "explain", "demo"}, c.Name()) {
			return // it has nothing to do on the host
		}
		acting = append(acting, c.Name())
		args, ok := given[c.Name()]
		if !ok {
			args = strings.Fields(c.CommandPath())[1:]
		}
		o := n.run(append([]string{"--host-proc=/run/proc"}, args...)...)
		require.Equal(t, 1, o.code, "%s: %s%s", args, o.stdout, o.stderr)
		require.Contains(t, o.stderr, "/run/proc", args)
	})
	require.Subset(t, acting, []string{"mount-cgroup", "mount-bpffs", "sysctlfix", "install-cni", "uninstall-cni", "uninstall", "status", "journal"})
	require.Empty(t, before.Diff(n.state()))
}
