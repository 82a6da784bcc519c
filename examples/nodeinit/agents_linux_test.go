// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// forwarding makes an agent want a value of ip_forward, in its own drop-in.
func forwarding(agent, value string, more ...string) []string {
	return append([]string{"sysctlfix", "--agent", agent, "--sysctl-config-file", "90-" + agent + ".conf", "--sysctl", "net.ipv4.ip_forward=" + value}, more...)
}

const ipForward = "/proc/sys/net/ipv4/ip_forward"

// strange records, for an agent, an object of a kind that this program does not know; the run
// that wrote it was killed, if asked.
func (n *node) strange(agent string, killed bool) {
	n.t.Helper()
	const file = "/var/lib/slipway/ledger"
	var begun []byte
	thing := ledger.State{}
	kind := &ledger.Kind{
		Name: "acme-thing",
		Read: func(context.Context, string) (ledger.State, error) { return thing, nil },
		Write: func(_ context.Context, _ string, to ledger.State) (err error) {
			thing = to
			begun, err = os.ReadFile(file)
			return err
		},
	}
	n.do(func() error {
		ctx := n.t.Context()
		b, err := (&ledger.Ledger{Agent: agent, NoOwner: true}).Open(ctx)
		if err != nil {
			return err
		}
		defer b.Close()
		_, err = b.Apply(ctx, "things", ledger.Wants{List: []ledger.Want{{Kind: kind, Object: "the thing", To: ledger.State{Type: "value", Value: "1"}}}})
		if err != nil || !killed {
			return err
		}
		return os.WriteFile(file, begun, 0o600)
	})
}

// editLedger changes the lines of the ledger, as if they had been written so.
func (n *node) editLedger(edit func(line string) string) {
	n.t.Helper()
	const file = "/var/lib/slipway/ledger"
	var edited strings.Builder
	for line := range strings.Lines(n.read(file)) {
		if _, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			text = edit(text)
			sum := sha256.Sum256([]byte(text))
			line = hex.EncodeToString(sum[:8]) + " " + text + "\n"
		}
		edited.WriteString(line)
	}
	n.write(file, edited.String())
}

func (n *node) boot() string { return n.shell("cat /proc/sys/kernel/random/boot_id") }

func TestPLAN14_AnAgentThatVanishedIsReleasedByTheCommand(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	n.ok(forwarding("stays", "1")...)
	end := n.alive("exec " + binary + ` run --agent gone --owner acme --only bpffs,sysctl --sysctl net.ipv4.ip_forward=1 --sysctl-config-file 91-gone.conf --bpf-root /run/its/bpf -- sh -c "echo ready; read end" 2>/run/report`)
	n.strange("gone", false)
	applied := n.state()
	n.exits(64, "release") // the agent must be named
	n.exits(64, "release", "--agent", "gone", "--state-dir=")
	require.Regexp(t, `; process \d+, which claimed the node for its owner "acme", runs\n`, unwrapped(n.ok("status", "--agent", "gone")))
	o := n.exits(1, "release", "--agent", "gone")
	require.Regexp(t, `release agent "gone": the agent is running: process \d+, which claimed .*\nnodeinit: --force: `, o.stderr)
	require.Empty(t, applied.Diff(n.state()))
	end()

	o = n.ok("release", "--agent", "gone")
	for _, left := range []string{"/etc/sysctl.d/91-gone.conf", "/run/its/bpf", "the thing"} {
		require.Contains(t, o.stdout, "left "+left+"\n")
	}
	require.NotContains(t, o.stdout, "ip_forward", "it is the other one's now")
	n.shell("mountpoint -q /run/its/bpf && test -e /etc/sysctl.d/91-gone.conf")
	require.NotContains(t, n.ok("status").stdout, "agent gone:")
	require.Contains(t, n.ok("status").stdout, "left in place, and no longer recorded")
	require.Contains(t, n.ok("release", "--agent", "gone").stdout, "0 recorded, 0 left in place")
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
		require.Regexp(t, `agent "third": the agent is running: process \d+, .*\nnodeinit: --force: `, o.stderr)
		require.NotContains(t, o.stderr, `"first"`)
		require.Empty(t, applied.Diff(n.state()))
	}
	o := n.ok("uninstall", "--any-owner")
	const others = ` of agent "cilium", but of first,`
	require.Contains(t, o.stdout, "nothing is recorded in /var/lib/slipway"+others+" second, third\n")
	require.Contains(t, n.ok("status", "--agent", "cilium").stdout, "nothing is recorded"+others)
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

// What this program cannot undo, or has a damaged record, stays and is named.
func TestPLAN14_UninstallOfAllAgentsNamesWhatItCannotUndo(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	n.ok(forwarding("damaged", "1")...)
	n.ok(forwarding("whole", "1")...)
	n.strange("strange", false)
	const file = "/etc/sysctl.d/90-damaged.conf"
	n.shell(`sed -i '/"kind":.*90-damaged/s/"mode"/"mood"/' /var/lib/slipway/ledger`)
	o := n.exits(1, "uninstall", "--all-agents")
	require.Contains(t, o.stderr, file)
	require.Contains(t, o.stderr, "step strange/things: revert: acme-thing the thing: recorded by a package that this program does not use")
	n.shell("test ! -e /etc/sysctl.d/90-whole.conf && test -e " + file)
	require.Equal(t, "0\n", n.read(ipForward))
	n.shell("rm " + file)
	n.ok("forget", "path "+file)
	n.exits(1, "uninstall", "--all-agents")
	o = n.ok("release", "--agent", "strange", "--output", "json")
	var released struct {
		Agent    string
		Recorded int
		Left     []string
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &released), o.stdout)
	require.Equal(t, []any{"strange", 1, []string{"the thing"}}, []any{released.Agent, released.Recorded, released.Left})
	n.ok("uninstall", "--all-agents")
}
