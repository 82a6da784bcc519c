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

func (n *node) ok(args ...string) outcome {
	n.t.Helper()
	o := n.run(args...)
	require.Zero(n.t, o.code, "%s: %s", args, o.stderr)
	return o
}

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
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Zero(t, n.runEnv([]string{"POD_UID=" + podA}, "mount-bpffs", "/run/some/bpf").code)
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor", "--owner", "sensor-1")
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor", "--owner", "sensor-2")
	require.Zero(t, n.runEnv([]string{"POD_UID=" + podA}, "mount-bpffs", "/run/some/bpf").code, "another agent's update is no obstacle")

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
	require.Equal(t, 3, n.run("uninstall", "--agent", "sensor", "--owner", "sensor-1").code)
	n.ok("uninstall", "--agent", "sensor", "--owner", "sensor-2")
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN14_TheListSaysWhoIsAlive(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	end := n.alive("exec " + binary + ` run --agent sensor --owner acme --only bpffs -- sh -c "echo ready; read end" 2>/run/report`)
	o := n.ok("journal")
	require.Regexp(t, `agent sensor: .*; alive: process \d+, which claimed the node for its owner "acme", runs\n`, unwrapped(o))
	n.ok("mount-bpffs")
	o = n.ok("uninstall")
	require.Contains(t, o.stdout, "leave /sys/fs/bpf to agent", "another running agent stops no uninstall")
	end()
	require.Contains(t, unwrapped(n.ok("journal")), "nothing shows that it is alive")
}

func TestPLAN14_AConflictIsAnErrorBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Equal(t, "0\n", n.read(ipForward))
	n.ok(forwarding("first", "1")...)
	applied := n.state()
	for _, more := range [][]string{nil, {"--output", "json"}} {
		o := n.run(forwarding("second", "0", more...)...)
		require.Equal(t, 1, o.code, o.stderr)
		require.Contains(t, o.stderr, `net.ipv4.ip_forward: another agent wants it differently: agent "first" has 1, and this one wants 0`)
		require.Contains(t, o.stderr, "--override makes this agent prevail")
		require.Empty(t, applied.Diff(n.state()))
		if more != nil {
			var report struct{ Results []struct{ Code string } }
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &report), o.stdout)
			require.Equal(t, "journal.conflict", report.Results[0].Code)
		}
	}
	o := n.run("check", "--only", "sysctl", "--agent", "second", "--sysctl", "net.ipv4.ip_forward=0")
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, o.stderr, "--override")

	n.ok(forwarding("second", "0", "--override")...)
	require.Equal(t, "0\n", n.read(ipForward))
	require.Equal(t, 1, n.run(forwarding("first", "1")...).code, "the value does not flip")
	n.ok("uninstall", "--agent", "second")
	require.Equal(t, "1\n", n.read(ipForward))
	n.ok("uninstall", "--agent", "first")
	require.Empty(t, before.Diff(n.state()))
}

// A value that already is as an agent wants it becomes its wish: nothing is changed, no change
// is reported, and the wish ends with the agent.
func TestPLAN14_WhatIsAsWantedIsAWish(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	values := func(command, agent, value string, more ...string) []string {
		return append([]string{command, "--only", "sysctl", "--agent", agent, "--sysctl-conf-dir=", "--sysctl", "net.ipv4.ip_forward=" + value}, more...)
	}
	n.ok(values("check", "first", "0")...)
	require.Empty(t, before.Diff(n.state()), "a check records nothing")
	for range 2 {
		require.Regexp(t, `sysctl +unchanged`, n.ok(values("apply", "first", "0")...).stdout)
	}
	o := n.ok("journal", "--agent", "first")
	require.Contains(t, o.stdout, "0 recorded, 1 as found")
	require.Regexp(t, `sysctl +sysctl/value +"net.ipv4.ip_forward" +as found`, o.stdout)
	require.Contains(t, unwrapped(n.ok("journal", "--agent", "second")), "agent first: owner: none; 0 recorded, 1 as found; last seen ")

	o = n.run(values("apply", "second", "1")...)
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, o.stderr, `net.ipv4.ip_forward: another agent wants it differently: agent "first" has 0, and this one wants 1`)
	n.ok(values("apply", "second", "1", "--override")...)
	require.Equal(t, 1, n.run(values("apply", "first", "0")...).code)
	last := func() string { return n.shell("cat /var/lib/slipway/first.last.json") }
	require.Contains(t, last(), "journal.conflict", "the failure is kept")
	require.Equal(t, 1, n.run(append(values("apply", "first", "0"), "--sysctl", "kernel.nothing=1", "--sysctl", "net.ipv4.conf.lo.rp_filter=0")...).code)
	require.Contains(t, last(), "sysctl.key-missing", "also where something is found as wanted")
	n.ok("uninstall", "--agent", "second")
	require.Equal(t, "0\n", n.read(ipForward))
	n.ok("uninstall", "--agent", "first")
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN14_AnAgentThatVanishedIsReleasedByTheCommand(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	n.ok(forwarding("stays", "1")...)
	end := n.alive("exec " + binary + ` run --agent gone --owner acme --only bpffs,sysctl --sysctl net.ipv4.ip_forward=1 --sysctl-config-file 91-gone.conf --bpf-root /run/its/bpf -- sh -c "echo ready; read end" 2>/run/report`)
	n.strange("gone")
	applied := n.state()
	require.Equal(t, 64, n.run("journal", "release").code, "the agent must be named")
	require.Equal(t, 64, n.run("journal", "release", "--agent", "gone", "--state-dir=").code)
	o := n.run("journal", "release", "--agent", "gone")
	require.Equal(t, 1, o.code, o.stderr)
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

func TestPLAN14_ReleaseAsJSON(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.strange("gone")
	o := n.ok("journal", "release", "--agent", "gone", "--output", "json")
	var released struct {
		Agent    string
		Recorded int
		Left     []journal.Entry
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &released), o.stdout)
	require.Equal(t, "gone", released.Agent)
	require.Equal(t, 1, released.Recorded)
	require.Equal(t, "the thing", released.Left[0].Object)
}

// For Cilium's own agent, more is checked than the recorded owner.
func TestPLAN14_CiliumIsNotReleasedWhileItRuns(t *testing.T) {
	n := newNode(t)
	n.ok("mount-bpffs", "/run/some/bpf")
	end := n.alive(ownPIDs + `$AGENT -c "$SAYS"`)
	for _, args := range [][]string{{"journal", "release", "--agent", "cilium"}, {"uninstall", "--all-agents"}} {
		o := n.run(args...)
		require.Equal(t, 1, o.code, o.stderr)
		require.Contains(t, o.stderr, "(cilium-agent) runs", args)
	}
	n.ok("mount-bpffs", "/run/other/bpf", "--agent", "sensor")
	n.ok("uninstall", "--agent", "sensor", "--any-owner")
	n.ok("journal", "release", "--agent", "cilium", "--force")
	end()
}

func TestPLAN14_AllAgentsAreUninstalledUnlessOneIsAlive(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	n.ok(forwarding("first", "1", "--owner", "one")...)
	n.ok(forwarding("second", "1")...)
	end := n.alive("exec " + binary + ` run --agent third --owner acme --only bpffs --bpf-root /run/its/bpf -- sh -c "echo ready; read end" 2>/run/report`)
	applied := n.state()
	require.Equal(t, 64, n.run("uninstall", "--all-agents", "--only", "sysctl").code)
	for _, more := range [][]string{nil, {"--dry-run"}, {"--any-owner", "--output", "json"}} {
		o := n.run(append([]string{"uninstall", "--all-agents"}, more...)...)
		require.Equal(t, 1, o.code, o.stderr)
		require.Regexp(t, `agent "third": the agent is running: process \d+, .*--force`, o.stderr)
		require.NotContains(t, o.stderr, `"first"`)
		require.Empty(t, applied.Diff(n.state()))
	}
	o := n.ok("uninstall", "--any-owner")
	require.Contains(t, o.stdout, "nothing is recorded", "that is one agent's")
	require.Empty(t, applied.Diff(n.state()))
	end()

	o = n.run("uninstall", "--all-agents", "--dry-run", "--output", "json")
	require.Equal(t, 2, o.code, o.stderr)
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
	t.Parallel()
	n := newNode(t)
	n.ok(forwarding("damaged", "1")...)
	n.ok(forwarding("whole", "1")...)
	n.strange("strange")
	const path = "/var/lib/slipway/damaged.journal"
	raw := n.read(path)
	n.write(path, raw+"damaged\n")
	for _, agent := range []string{"cilium", "damaged"} { // whichever agent asks
		o := n.run("uninstall", "--all-agents", "--agent", agent)
		require.Equal(t, 1, o.code, o.stderr)
		require.Contains(t, o.stderr, `agent "damaged": `+path+": unreadable journal")
		require.Contains(t, o.stderr, "step strange/things: revert: acme/thing the thing: recorded by a package that this program does not know")
		n.shell("test ! -e /etc/sysctl.d/90-whole.conf && test -e /etc/sysctl.d/90-damaged.conf")
		require.Equal(t, "1\n", n.read(ipForward), "the value of the agent whose file is damaged")
	}
	require.Contains(t, n.ok("journal").stdout, "agent damaged: owner: none; 7 recorded")
	require.Contains(t, unwrapped(n.ok("journal")), "unreadable journal")
	n.write(path, raw)
	require.Equal(t, 1, n.run("uninstall", "--all-agents").code)
	require.Equal(t, "0\n", n.read(ipForward))
	n.ok("journal", "release", "--agent", "strange")
	n.ok("uninstall", "--all-agents")
}

func TestPLAN15_WhatAnInstallerLeftIsAdopted(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /opt/cni/bin /etc/cni/net.d")
	n.write("/opt/cni/bin/test-cni", plugin)
	n.write("/opt/cni/bin/loopback", plugin)
	n.shell("chmod 755 /opt/cni/bin/*")
	n.write("/etc/cni/net.d/05-cilium.conflist", conflist)
	n.shell("chmod 600 /etc/cni/net.d/05-cilium.conflist")
	before := n.state()
	install := func(command string, more ...string) []string {
		return append([]string{command, "--plugins", n.plugins, "--cni-conf", n.conf}, more...)
	}
	o := n.run(install("check", "--only", "cni")...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "/opt/cni/bin/test-cni is as wanted, and was not made by this agent")
	require.Contains(t, o.stdout, "/etc/cni/net.d/05-cilium.conflist is as wanted")
	o = n.run(install("check", "--only", "cni", "--adopt")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, "adopt /opt/cni/bin/test-cni")
	require.Empty(t, before.Diff(n.state()))
	n.ok(install("install-cni", "--adopt")...)
	require.Regexp(t, `cni +cni/file +"/opt/cni/bin/test-cni" +adopted`, n.ok("journal").stdout)
	n.ok(install("install-cni", "--adopt")...)
	n.ok("uninstall")
	n.shell("test ! -e /opt/cni/bin/test-cni && test ! -e /etc/cni/net.d/05-cilium.conflist && test -e /opt/cni/bin/loopback")
}

// A main CNI and a chained one, whose configuration names the main one's plugin.
func TestPLAN14_AllAgentsOfOneChain(t *testing.T) {
	t.Parallel()
	for _, order := range [][2]string{{"main", "chained"}, {"chained", "main"}} {
		n := newNode(t)
		chained := filepath.Join(n.work, "chained")
		require.NoError(t, os.Mkdir(chained, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(chained, "cilium-cni"), []byte(plugin), 0o755))
		before := n.state()
		apply := func() {
			n.ok("install-cni", "--agent", "main", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "10-main.conflist")
			n.ok("install-cni", "--agent", "chained", "--plugins", chained, "--cni-chain", "test")
		}
		apply()
		o := n.ok("uninstall", "--all-agents")
		require.Empty(t, before.Diff(n.state()), o.stdout)

		apply()
		for _, agent := range order {
			n.run("uninstall", "--agent", agent)
		}
		o = n.ok("uninstall", "--all-agents")
		require.Empty(t, before.Diff(n.state()), o.stdout)
	}
}
