// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// busy starts an apply for the owner, which holds the node's lock and hangs in a step.
func (n *node) busy(owner string) (pid int) {
	n.t.Helper()
	release := n.locked("/run/slipway.lock")
	dead := filepath.Join(n.work, "dead")
	cmd := n.Command(binary, "apply", "--only", "bpffs", "--bpf-root", dead+"/bpf", "--owner", owner)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	stdout, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("  waiting for ")))
	require.NoError(n.t, err)
	n.dead(dead) // once all has been checked
	release()
	n.awaitCall(cmd.Process.Pid)
	n.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd.Process.Pid
}

// Each command that changes the node waits for the lock, also from a container and without a
// journal, and then names its holder. Those that only look take no lock and make nothing.
func TestPLAN2_EachCommandThatChangesTheNodeWaitsForItsHolder(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.left()
	n.ok(n.args("apply", "--skip", "bpffs", "--owner", podA)...)
	n.ok("mount-cgroup", "/run/other", "--agent", "other")
	n.busy(podA)
	holder := fmt.Sprintf(`lock /run/slipway\.lock: still held after \S+ by pid \d+ on "slipway-node" \(owner "%s", since 20\S+Z\)`, podA)
	before := n.state()
	for _, args := range [][]string{
		n.args("apply", "--cgroup-root", "/run/x"), {"apply", "--state-dir=", "--only", "cgroup", "--cgroup-root", "/run/x"},
		{"run", "--only", "cgroup", "--cgroup-root", "/run/x", "--", "false"}, {"mount-cgroup", "/run/x"}, {"mount-bpffs", "/run/x"},
		{"sysctlfix", "--sysctl-config-file", "99-x.conf"}, {"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "06-x.conflist"},
		{"uninstall"}, {"uninstall", "--all-agents"}, {"uninstall-cni"}, {"journal", "forget", cgroupRoot}, {"journal", "release", "--agent", "other"},
		{"cleanup", "--all-state", "-f"}, {"cleanup", "--all-state", "-f", "--state-dir="},
	} {
		at := 1
		if args[0] == "journal" {
			at = 2
		}
		args = slices.Insert(slices.Clone(args), at, "--lock-timeout=100ms")
		o := n.runEnv([]string{"POD_UID=" + podA}, args...)
		require.Equal(t, 1, o.code, "%s: %s%s", args, o.stdout, o.stderr)
		require.Regexp(t, holder, o.stderr, args)
	}
	require.Regexp(t, `still held after \S+ by pid \d+ on "slipway-node"`, n.fromAPod("mount-cgroup", "/run/x", "--lock-timeout=100ms", "--owner", podA))
	for _, args := range [][]string{
		n.args("check"), {"uninstall", "--dry-run"}, {"uninstall-cni", "--dry-run"}, {"uninstall", "--dry-run", "--all-agents"},
		{"cleanup", "--all-state", "--dry-run"}, {"status"}, {"journal"},
	} {
		o := n.runEnv([]string{"POD_UID=" + podA}, args...)
		require.Contains(t, []int{0, 2}, o.code, "%s: %s", args, o.stderr)
		require.NotContains(t, o.stderr, "slipway.lock", args)
	}
	n.shell("find /sys/fs/cgroup/pod -depth -type d -exec rmdir {} + ; rm -rf /run/mount")
	require.Empty(t, strings.Join(before.Diff(n.state()), "\n"))
}

// While a run waits at a gate, it holds no lock and has claimed nothing: others go on.
func TestPLAN16_OthersGoOnWhileARunWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.interrupted(func(int) {
		n.ok("mount-bpffs", "/run/x", "--lock-timeout=0")
		require.Contains(t, n.ok("journal").stdout, "owner: none; ")
	}, "--wait-for-kube-proxy", "10m")
	require.Equal(t, 1, o.code, o.stderr)
	require.Equal(t, "failed", o.report(t).statuses()["kube-proxy"])
}
