// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
)

// unwrapped is output in which each text is one line.
func unwrapped(o outcome) string { return strings.ReplaceAll(o.stdout, "\n  ", " ") }

const longPath = "/run/a/directory/of/the/agent/whose/path/is/longer/than/a/line/of/a/terminal/is/wide"

// However long a path is, it is there as a whole, and the table fits a terminal.
func TestPLAN6_TheJournalFits80Columns(t *testing.T) {
	t.Parallel()
	golden(t, "journal-rows.txt", main.JournalRows(
		[5]string{"host-paths", "hostpath/dir", "/var/run/netns", "done", "2 minutes ago"},
		[5]string{"bpffs", "bpffs/mount", longPath, "done", "2 minutes ago"},
		[5]string{"sysctl", "sysctl/file", dropIn, "kept", "23 minutes ago"},
		[5]string{"sysctl", "sysctl/value", "net.ipv4.ip_forward", "as found", "just now"},
		[5]string{"", "cni/file", "/opt/cni/bin/test-cni", "left for good", "11 hours ago"},
	))

	n := newNode(t)
	n.ok("mount-bpffs", longPath)
	n.ok(n.args("apply", "--agent", "another-agent-with-a-name", "--owner", "11111111-2222-3333-4444-555555555555")...)
	n.ok(n.args("apply", "--bpf-root", longPath)...)
	for _, agent := range []string{"cilium", "another-agent-with-a-name"} {
		o := n.ok("journal", "--agent", agent)
		for line := range strings.Lines(o.stdout) {
			fits := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= 80
			require.True(t, fits || strings.HasPrefix(line, `    "`+longPath[:40]), line)
		}
		require.Contains(t, o.stdout, "\n    \""+dropIn+"\"\n")
	}
	require.Contains(t, n.ok("journal").stdout, "\n    \""+longPath+"\"\n")
}

func TestPLAN6_JournalShowsWhatIsRecordedAndForgets(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run("journal")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "/var/lib/slipway: owner: none; 0 recorded\n", o.stdout)

	require.Zero(t, n.runEnv([]string{"POD_UID=pod-1"}, "mount-bpffs", "/run/some/bpf").code)
	o = n.run("journal")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, `owner: "pod-1", generation 1; 3 recorded`)
	require.Regexp(t, `bpffs +bpffs/mount +"/run/some/bpf" +done`, o.stdout)
	o = n.run("journal", "--output", "json")
	var view struct {
		Owner      string
		Generation int
		Entries    []struct{ Kind, Object, Step string }
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &view), o.stdout)
	require.Equal(t, "pod-1", view.Owner)
	require.Equal(t, 1, view.Generation)
	require.Len(t, view.Entries, 3)

	require.Equal(t, 3, n.run("journal", "forget", "/run/some/bpf").code, "it is pod-1's")
	require.Equal(t, 1, n.run("journal", "forget", "--owner", "pod-1", "/nothing").code)
	o = n.run("journal", "forget", "--owner", "pod-1", "/run/some/bpf")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "forgot bpffs/mount /run/some/bpf, which step bpffs had changed")
	require.Equal(t, 64, n.run("journal", "--state-dir", "").code)
}

func TestPLAN11_AnyOwnersIsUndoneUnlessAnAgentRuns(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Zero(t, n.runEnv([]string{"POD_UID=pod-1"}, n.args("apply")...).code)
	applied := n.state()
	for _, args := range [][]string{{"uninstall"}, {"uninstall", "--owner", "pod-2"}, {"uninstall", "--dry-run"}} {
		o := n.run(args...)
		require.Equal(t, 3, o.code, o.stderr)
		require.Contains(t, o.stderr, `"pod-1" (generation 1`)
		require.Empty(t, applied.Diff(n.state()))
	}

	end := n.alive(ownPIDs + `$AGENT -c "$SAYS"`)
	o := n.run("uninstall", "--any-owner")
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, o.stderr, "the agent is running")
	require.Contains(t, o.stderr, "--force")
	end()

	n.shell("rm /var/run/cilium/cilium.pid")
	o = n.run("uninstall", "--any-owner")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN11_ASupersededOwnerMayTakeOver(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, owner := range []string{"old", "new"} {
		require.Zero(t, n.run("mount-bpffs", "--owner", owner).code)
	}
	o := n.run("mount-cgroup", "--owner", "old")
	require.Equal(t, 3, o.code, o.stderr)
	o = n.run("check", "--only", "cgroup", "--owner", "old")
	require.Equal(t, 3, o.code, o.stderr)
	require.Contains(t, o.stderr, "take it over")
	require.Equal(t, 2, n.run("check", "--only", "cgroup", "--owner", "newer").code, "an apply would claim the node")
	o = n.run("mount-cgroup", "--owner", "old", "--take-over")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, 3, n.run("uninstall", "--owner", "new").code)
	require.Zero(t, n.run("uninstall", "--owner", "old").code)
}
