// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whichever command fails, its line ends with the code of the cause.
func TestPLAN18_EachCommandsFailureHasItsCode(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	fails := func(code string, args ...string) {
		t.Helper()
		o := n.run(args...)
		require.Contains(t, []int{1, 3}, o.code, "%s: %s", args, o.stderr)
		require.Regexp(t, `(?m)^nodeinit: .*\[`+regexp.QuoteMeta(code)+`\]$`, o.stderr, args)
	}
	n.shell("mkdir /run/taken; mount -n -t tmpfs tmpfs /run/taken")
	fails("config.source-missing", "build-config", "--source", "file:/none", "--dest", "/run/x")
	fails("config.source-missing", "explain", "--source", "file:/none")
	fails("config.source-missing", "cleanup", "--plan", "/none", "-f")
	fails("bpffs.foreign", "mount-bpffs", "/run/taken")
	fails("cgroup.foreign", "mount-cgroup", "/run/taken")
	fails("sysctl.key-missing", "sysctlfix", "--sysctl", "net.ipv4.none=1")
	fails("sysctl.key-missing", "run", "--sysctl", "net.ipv4.none=1", "--", "true")
	fails("cni.plugin-missing", "install-cni", "--cni-conf", n.conf)

	n.ok(n.args("apply", "--owner", "pod-1")...)
	for _, args := range [][]string{{"uninstall"}, {"uninstall-cni", "--owner", "pod-2"}, {"journal", "forget", "/x"}} {
		fails("journal.not-owner", args...)
	}
	n.left()
	end := n.listen()
	for _, args := range [][]string{{"cleanup", "--all-state", "-f"}, {"uninstall", "--any-owner"}, {"uninstall", "--all-agents"}, {"journal", "release", "--agent", "cilium"}} {
		fails("cleanup.agent-alive", args...)
	}
	end()
	n.shell("echo changed >> " + dropIn)
	fails("journal.changed", "uninstall", "--owner", "pod-1")
	n.shell("echo garbled >> /var/lib/slipway/cilium.journal")
	for _, args := range [][]string{{"uninstall", "--owner", "pod-1"}, {"journal"}, {"check"}, {"apply", "--owner", "pod-1"}, {"install-cni", "--plugins", n.plugins}} {
		fails("journal.unreadable", args...)
	}
}
