// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var allSteps = []string{"config", "cleanup", "host-paths", "cgroup", "sysctl", "bpffs", "cni"}

func each(status string, skipped ...string) map[string]string {
	m := map[string]string{}
	for _, step := range allSteps {
		if m[step] = status; slices.Contains(skipped, step) {
			m[step] = "skipped"
		}
	}
	return m
}

// undone is uninstall's expected status for each step: cleanup records nothing.
func undone(status string) map[string]string {
	m := each(status)
	m["cleanup"] = "unchanged"
	return m
}

func TestDemoLeavesTheMachineAsItWas(t *testing.T) {
	t.Parallel()
	newNode(t) // skips if no node can be made
	before := machine(t)
	o := here(t, nil, "demo")
	require.Zero(t, o.code, o.stdout+o.stderr)
	require.Empty(t, o.stderr)
	require.Empty(t, before.Diff(machine(t)))
	for _, scene := range []string{
		"--- apply\n", "--- apply again: nothing to do", "--- three things break", "--- check: what has broken",
		"--- apply: repair that, and nothing else", "--- uninstall: take it all back", "Nothing is left:", "Done.",
	} {
		require.Contains(t, o.stdout, scene)
	}
	require.Contains(t, o.stdout, "7 steps: 6 changed, 1 skipped")
	require.Contains(t, o.stdout, "7 steps: 6 unchanged, 1 skipped")
	require.Contains(t, o.stdout, "8 steps: 4 unchanged, 3 would-change, 1 skipped")
	require.Contains(t, o.stdout, "7 steps: 3 unchanged, 3 changed, 1 skipped")
}

func TestPLAN6_UninstallLeavesTheNodeAsItWas(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d /etc/cni/net.d && echo '{}' > /etc/cni/net.d/05-cilium.conflist && chmod 644 /etc/cni/net.d/05-cilium.conflist && echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
	n.ownLoopback()
	before := n.state()
	n.ok(n.args("apply")...)
	require.NotEmpty(t, before.Diff(n.state()))
	n.ok(n.args("apply")...)

	plan := n.exits(2, "uninstall", "--dry-run", "--output", "json")
	require.Equal(t, undone("would-change"), plan.report(t).statuses())
	o := n.ok("uninstall", "--output", "json")
	require.Equal(t, undone("changed"), o.report(t).statuses())
	require.Empty(t, before.Diff(n.state()))

	o = n.ok("uninstall")
	require.Contains(t, o.stdout, "7 unchanged")
	require.Empty(t, before.Diff(n.state()))
}

// container is a script that runs its remaining arguments like a container runtime: in new
// cgroup, mount and pid namespaces, with nothing of the host but its /proc, at /hostproc.
const container = `
mkdir -p /sys/fs/cgroup/pod /tmp/hostproc.$$
point=/tmp/hostproc.$$
echo $$ > /sys/fs/cgroup/pod/cgroup.procs
exec unshare --mount --cgroup --pid --fork --propagation private sh -euc '
	mount --rbind /proc "$0"
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /opt
	mount -t tmpfs tmpfs /etc
	mkdir /run/inside
	mount -t cgroup2 cgroup2 /run/inside
	echo "child $(stat -c %d:%i /run/inside)"
	bin=$1; command=$2; shift 2
	"$bin" --host-proc "$0" "$command" "$@"
' "$point" "$@"
`
