// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// forwarding makes an agent want a value of ip_forward, in its own drop-in.
func forwarding(agent, value string, more ...string) []string {
	return append([]string{"sysctlfix", "--agent", agent, "--sysctl-config-file", "90-" + agent + ".conf", "--sysctl", "net.ipv4.ip_forward=" + value}, more...)
}

const ipForward = "/proc/sys/net/ipv4/ip_forward"

// strange records, for an agent, an entry that this program cannot undo and that an interrupted
// run has begun.
func (n *node) strange(agent string) {
	n.t.Helper()
	n.record(agent, journal.Entry{Kind: "acme/thing", Object: "the thing", After: journal.State{Type: "value", Value: "1"}})
}

// record records entries of an agent, and completes those that are done.
func (n *node) record(agent string, entries ...journal.Entry) {
	n.t.Helper()
	n.do(func() error {
		j, err := (&journal.Node{Agent: agent, NoOwner: true, Boot: strings.TrimSpace(n.boot())}).Open(n.t.Context(), nil)
		if err != nil {
			return err
		}
		defer j.Close()
		ctx := journal.With(n.t.Context(), j.Step("things"))
		for _, e := range entries {
			if err = errors.Join(err, j.Begin(ctx, e)); e.Done {
				err = errors.Join(err, j.Complete(ctx, e))
			}
		}
		return err
	})
}

func (n *node) boot() string { return n.shell("cat /proc/sys/kernel/random/boot_id") }

func TestPLAN14_EachAgentHasItsOwnJournalOwnerAndUninstall(t *testing.T) {
	n := newParallelNode(t)
	defer n.asItWas()()
	n.okEnv([]string{"POD_UID=" + podA}, "mount-bpffs", "/run/some/bpf")
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor", "--owner", "sensor-1")
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor", "--owner", "sensor-2")
	n.okEnv([]string{"POD_UID=" + podA}, "mount-bpffs", "/run/some/bpf") // another agent's update is no obstacle

	o := n.ok("journal")
	require.Contains(t, unwrapped(o), `owner: "`+podA+`", generation 1; 3 recorded`)
	require.Regexp(t, `(?m)^agent sensor: owner: "sensor-2", generation 2; 3 recorded; last seen just now; nothing shows that it is alive$`, unwrapped(o))
	o = n.ok("journal", "--agent", "sensor", "--output", "json")
	var view struct {
		Agent, Owner string
		Entries      []journal.Entry
		Others       []struct {
			Agent, Owner string
			Generation   int
			Since        time.Time
			Recorded     int
			LastSeen     time.Time
			Alive, Error string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &view), o.stdout)
	require.Equal(t, "sensor", view.Agent)
	require.Len(t, view.Entries, 3)
	require.Len(t, view.Others, 1)
	other := view.Others[0]
	require.Equal(t, []any{"cilium", podA, 1, 3, "", ""}, []any{other.Agent, other.Owner, other.Generation, other.Recorded, other.Alive, other.Error})
	require.WithinDuration(t, time.Now(), other.Since, time.Minute)
	require.WithinDuration(t, time.Now(), other.LastSeen, time.Minute)

	o = n.ok("uninstall", "--owner", podA)
	require.Contains(t, o.stdout, `leave /run/some/bpf to agent "sensor", which wants it too`)
	n.shell("mountpoint -q /run/some/bpf")
	n.exits(3, "uninstall", "--agent", "sensor", "--owner", "sensor-1")
	n.ok("uninstall", "--agent", "sensor", "--owner", "sensor-2")
}

func TestPLAN14_AConflictIsAnErrorBeforeAnythingIsChanged(t *testing.T) {
	n := newParallelNode(t)
	defer n.asItWas()()
	require.Equal(t, "0\n", n.read(ipForward))
	n.ok(forwarding("first", "1")...)
	applied := n.state()
	o := n.exits(1, forwarding("second", "0", "--output", "json")...)
	require.Contains(t, o.stderr, `net.ipv4.ip_forward: another agent wants it differently: agent "first" has 1, and this one wants 0`)
	require.Contains(t, o.stderr, "--override makes this agent prevail")
	require.Equal(t, "journal.conflict", o.report(t).Results[0].Code)
	require.Empty(t, applied.Diff(n.state()))
	o = n.exits(1, "check", "--only", "sysctl", "--agent", "second", "--sysctl", "net.ipv4.ip_forward=0")
	require.Contains(t, o.stderr, "--override")

	n.ok(forwarding("second", "0", "--override")...)
	require.Equal(t, "0\n", n.read(ipForward))
	n.exits(1, forwarding("first", "1")...) // the value does not flip
	n.ok("uninstall", "--agent", "second")
	require.Equal(t, "1\n", n.read(ipForward))
	n.ok("uninstall", "--agent", "first")
}

// A value that already is as an agent wants it becomes its wish: nothing is changed, no change
// is reported, and the wish ends with the agent.
func TestPLAN14_WhatIsAsWantedIsAWish(t *testing.T) {
	n := newParallelNode(t)
	before := n.state()
	values := func(command, agent, value string, more ...string) []string {
		return append([]string{command, "--only", "sysctl", "--agent", agent, "--sysctl-conf-dir=", "--sysctl", "net.ipv4.ip_forward=" + value}, more...)
	}
	require.Regexp(t, `sysctl +unchanged`, n.ok(values("apply", "first", "0")...).stdout)
	o := n.ok("journal", "--agent", "first")
	require.Contains(t, o.stdout, "0 recorded, 1 as found")
	require.Regexp(t, `sysctl +sysctl/value +"net.ipv4.ip_forward" +as found`, o.stdout)

	o = n.exits(1, values("apply", "second", "1")...)
	require.Contains(t, o.stderr, `net.ipv4.ip_forward: another agent wants it differently: agent "first" has 0, and this one wants 1`)
	n.ok(values("apply", "second", "1", "--override")...)
	n.exits(1, values("apply", "first", "0")...)
	last := func() string { return n.shell("cat /var/lib/slipway/first.last.json") }
	require.Contains(t, last(), "journal.conflict", "the failure is kept")
	n.exits(1, append(values("apply", "first", "0"), "--sysctl", "kernel.nothing=1", "--sysctl", "net.ipv4.conf.lo.rp_filter=0")...)
	require.Contains(t, last(), "sysctl.key-missing", "also where something is found as wanted")
	n.ok("uninstall", "--agent", "second")
	require.Equal(t, "0\n", n.read(ipForward))
	n.ok("uninstall", "--agent", "first")
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN14_AnAgentThatVanishedIsReleasedByTheCommand(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	n.ok(forwarding("stays", "1")...)
	end := n.alive("exec " + binary + ` run --agent gone --owner acme --only bpffs,sysctl --sysctl net.ipv4.ip_forward=1 --sysctl-config-file 91-gone.conf --bpf-root /run/its/bpf -- sh -c "echo ready; read end" 2>/run/report`)
	n.strange("gone")
	applied := n.state()
	n.exits(64, "journal", "release") // the agent must be named
	n.exits(64, "journal", "release", "--agent", "gone", "--state-dir=")
	require.Regexp(t, `agent gone: .*; alive: process \d+, which claimed the node for its owner "acme", runs\n`, unwrapped(n.ok("journal")))
	o := n.exits(1, "journal", "release", "--agent", "gone")
	require.Regexp(t, `release agent "gone": the agent is running: process \d+, which claimed .*--force`, o.stderr)
	require.Empty(t, applied.Diff(n.state()))
	end()

	o = n.ok("journal", "release", "--agent", "gone")
	for _, left := range []string{"sysctl/file /etc/sysctl.d/91-gone.conf", "bpffs/mount /run/its/bpf", "acme/thing the thing"} {
		require.Contains(t, o.stdout, "left "+left)
	}
	require.NotContains(t, o.stdout, "ip_forward", "it is the other one's now")
	n.shell("mountpoint -q /run/its/bpf && test -e /etc/sysctl.d/91-gone.conf")
	require.NotContains(t, n.ok("journal", "--agent", "stays").stdout, "agent gone:")
	require.Contains(t, n.ok("journal", "--agent", "gone").stdout, "left for good")
	require.Contains(t, n.ok("journal", "release", "--agent", "gone").stdout, "nothing is recorded")
	n.ok("uninstall", "--agent", "stays")
	require.Equal(t, "0\n", n.read(ipForward), "the original comes back")
}

func TestPLAN14_AllAgentsAreUninstalledUnlessOneIsAlive(t *testing.T) {
	n := newParallelNode(t)
	before := n.state()
	n.ok(forwarding("first", "1", "--owner", "one")...)
	n.ok(forwarding("second", "1")...)
	end := n.alive("exec " + binary + ` run --agent third --owner acme --only bpffs --bpf-root /run/its/bpf -- sh -c "echo ready; read end" 2>/run/report`)
	applied := n.state()
	n.exits(64, "uninstall", "--all-agents", "--only", "sysctl")
	for _, more := range [][]string{nil, {"--dry-run"}, {"--any-owner", "--output", "json"}} {
		o := n.exits(1, append([]string{"uninstall", "--all-agents"}, more...)...)
		require.Regexp(t, `agent "third": the agent is running: process \d+, .*--force`, o.stderr)
		require.NotContains(t, o.stderr, `"first"`)
		require.Empty(t, applied.Diff(n.state()))
	}
	o := n.ok("uninstall", "--any-owner")
	require.Contains(t, o.stdout, "nothing is recorded", "that is one agent's")
	require.Empty(t, applied.Diff(n.state()))
	end()

	o = n.exits(2, "uninstall", "--all-agents", "--dry-run", "--output", "json")
	want := map[string]string{"first/sysctl": "would-change", "second/sysctl": "would-change", "third/bpffs": "would-change"}
	require.Equal(t, want, o.report(t).statuses())
	require.Empty(t, applied.Diff(n.state()))
	o = n.ok("uninstall", "--all-agents", "--output", "json")
	want = map[string]string{"first/sysctl": "changed", "second/sysctl": "changed", "third/bpffs": "changed"}
	require.Equal(t, want, o.report(t).statuses())
	n.shell("rm -f /run/report; rmdir /run/cilium")
	require.Empty(t, before.Diff(n.state()))
	require.Contains(t, n.ok("uninstall", "--all-agents").stdout, "nothing is recorded")
}

// Entries that this program cannot undo, and an agent with a damaged file, stay and are named.
func TestPLAN14_AllAgentsButWhatCannotBeUndone(t *testing.T) {
	n := newParallelNode(t)
	n.ok(forwarding("damaged", "1")...)
	n.ok(forwarding("whole", "1")...)
	n.strange("strange")
	const path = "/var/lib/slipway/damaged.journal"
	raw := n.read(path)
	n.write(path, raw+"damaged\n")
	for _, agent := range []string{"cilium", "damaged"} { // whichever agent asks
		o := n.exits(1, "uninstall", "--all-agents", "--agent", agent)
		require.Contains(t, o.stderr, `agent "damaged": `+path+": unreadable journal")
		require.Contains(t, o.stderr, "step strange/things: revert: acme/thing the thing: recorded by a package that this program does not know")
		n.shell("test ! -e /etc/sysctl.d/90-whole.conf && test -e /etc/sysctl.d/90-damaged.conf")
		require.Equal(t, "1\n", n.read(ipForward), "the value of the agent whose file is damaged")
	}
	require.Contains(t, n.ok("journal").stdout, "agent damaged: owner: none; 7 recorded")
	require.Contains(t, unwrapped(n.ok("journal")), "unreadable journal")
	n.write(path, raw)
	n.exits(1, "uninstall", "--all-agents")
	require.Equal(t, "0\n", n.read(ipForward))
	o := n.ok("journal", "release", "--agent", "strange", "--output", "json")
	var released struct {
		Agent    string
		Recorded int
		Left     []journal.Entry
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &released), o.stdout)
	require.Equal(t, []any{"strange", 1, "the thing"}, []any{released.Agent, released.Recorded, released.Left[0].Object})
	n.ok("uninstall", "--all-agents")
}

// A main CNI and a chained one, whose configuration names the main one's plugin.
func TestPLAN14_AllAgentsOfOneChain(t *testing.T) {
	n := newParallelNode(t)
	defer n.asItWas()()
	chained := filepath.Join(n.work, "chained")
	require.NoError(t, os.Mkdir(chained, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(chained, "cilium-cni"), []byte(plugin), 0o755))
	n.ok("install-cni", "--agent", "main", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "10-main.conflist")
	n.ok("install-cni", "--agent", "chained", "--plugins", chained, "--cni-chain", "test")
	n.run("uninstall", "--agent", "main")
	n.ok("uninstall", "--all-agents")
}
