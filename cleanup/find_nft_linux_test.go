// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// enterNetfilter enters a node for netfilter's tools, whose lock is below /run.
func enterNetfilter(t *testing.T, tools ...string) {
	t.Helper()
	enter(t, testns.Mount|testns.Net)
	requireTools(t, tools...)
	require.NoError(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"))
}

// rules feeds lines to an iptables-restore, without flushing.
func rules(t testing.TB, tool string, lines ...string) {
	t.Helper()
	cmd := exec.Command(tool+"-restore", "--noflush")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// saved returns a tool's listing of all its tables, without comments and counters.
func saved(t testing.TB, tool string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(run(t, tool+"-save")) {
		if chain, _, ok := strings.Cut(line, " ["); ok && line[0] == ':' {
			line = chain + "\n"
		}
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// foreignRules are twins beside, around and about ours.
var foreignRules = []string{
	"*nat", ":KUBE-SERVICES - [0:0]", ":MY_CILIUM_x - [0:0]", ":cilium_lower - [0:0]", ":CILIUM - [0:0]",
	`-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`,
	"-A PREROUTING -j MY_CILIUM_x", "-A POSTROUTING -j cilium_lower", "-A POSTROUTING -j CILIUM",
	`-A KUBE-SERVICES -m comment --comment "-j CILIUM_POST_nat" -j MARK --set-xmark 0x4000/0x4000`,
	"COMMIT",
	"*mangle", ":KUBE-IPTABLES-HINT - [0:0]", "COMMIT",
	"*filter", "-A FORWARD -i cilium_host -j ACCEPT", "COMMIT",
}

// ourRules are the agent's: chains that jump to each other and to foreign chains, and two equal
// rules.
var ourRules = []string{
	"*nat", ":CILIUM_POST_nat - [0:0]", ":CILIUM_PRE_nat - [0:0]", ":OLD_CILIUM_PRE_nat - [0:0]",
	`-I POSTROUTING 1 -m comment --comment "cilium-feeder: CILIUM_POST_nat" -j CILIUM_POST_nat`,
	`-A PREROUTING -m comment --comment "cilium-feeder: CILIUM_PRE_nat" -j CILIUM_PRE_nat`,
	`-A KUBE-SERVICES -g CILIUM_PRE_nat`,
	`-A PREROUTING -j OLD_CILIUM_PRE_nat`, `-A PREROUTING -j OLD_CILIUM_PRE_nat`,
	`-A CILIUM_POST_nat ! -o cilium_+ -m comment --comment "cilium masquerade \"non-cluster\"" -j MASQUERADE`,
	`-A CILIUM_POST_nat -j CILIUM_PRE_nat`, `-A CILIUM_PRE_nat -j cilium_lower`,
	"COMMIT",
	"*mangle", ":CILIUM_PRE_mangle - [0:0]",
	`-A PREROUTING -m comment --comment "cilium-feeder: CILIUM_PRE_mangle" -j CILIUM_PRE_mangle`,
	`-A CILIUM_PRE_mangle -m mark --mark 0x200/0xf00 -j MARK --set-xmark 0x200/0xffffffff`,
	"COMMIT",
	"*raw", ":CILIUM_OUTPUT_raw - [0:0]", `-A OUTPUT -j CILIUM_OUTPUT_raw`, "COMMIT",
	"*filter", ":CILIUM_FORWARD - [0:0]", ":CILIUM_alone - [0:0]", `-A FORWARD -j CILIUM_FORWARD`, "COMMIT",
}

func netfilterOnly() cleanup.Leftovers {
	own := cleanup.Cilium()
	return cleanup.Leftovers{
		Ownership: cleanup.Ownership{Agent: own.Agent, ChainPrefixes: own.ChainPrefixes, IPSetPrefixes: own.IPSetPrefixes},
		Scope:     "all-state",
	}
}

// A rule in an unlisted place jumps to one of our chains and so keeps it; the next transaction
// removes everything else.
func TestCLN4_ChainInUseIsNamedAndTheRestGoes(t *testing.T) {
	enterNetfilter(t, "iptables-nft", "nft")
	rules(t, "iptables-nft", foreignRules...)
	rules(t, "iptables-nft", ourRules...)
	run(t, "nft", "add map ip nat foreign { type inet_service : verdict; elements = { 80 : jump CILIUM_PRE_nat }; }")
	c := netfilterOnly()
	var gone, left int
	c.Progress = func(_, _ int, item string, err error) {
		if err != nil {
			left++
			require.Equal(t, "iptables-nft ip nat chain CILIUM_PRE_nat", item)
			return
		}
		gone++
	}
	err := c.Apply(context.Background())
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "remove iptables-nft ip nat chain CILIUM_PRE_nat: device or resource busy (used by an element of map foreign in table ip nat: see nft list map ip nat foreign, and nft delete element)")
	require.Equal(t, []int{14, 1}, []int{gone, left})
	require.Equal(t, 1, strings.Count(run(t, "nft", "list", "ruleset"), "chain CILIUM_"))

	run(t, "nft", "flush map ip nat foreign")
	c.Progress = nil
	apply(t, c)
	require.NotContains(t, run(t, "nft", "list", "ruleset"), "CILIUM_PRE")
}

// A verdict map without a name belongs to a rule, which is named with its command and stays.
func TestCLN12_ARuleOfOthersThatLeadsToOurChainIsNamedWithTheCommandThatDeletesIt(t *testing.T) {
	enterNetfilter(t, "iptables-nft", "nft")
	rules(t, "iptables-nft", "*nat", ":CILIUM_PRE_nat - [0:0]", "-A PREROUTING -j CILIUM_PRE_nat", "COMMIT")
	run(t, "nft", "add rule ip nat PREROUTING tcp dport vmap { 79 : accept, 81 : drop }")
	run(t, "nft", "add rule ip nat PREROUTING tcp dport vmap { 80 : jump CILIUM_PRE_nat, 81 : accept }")
	c := netfilterOnly()
	err := c.Apply(t.Context())
	require.ErrorIs(t, err, unix.EBUSY)
	const says = "remove iptables-nft ip nat chain CILIUM_PRE_nat: device or resource busy (used by a rule of chain PREROUTING in table ip nat, to delete with: nft delete rule ip nat PREROUTING handle "
	require.ErrorContains(t, err, says)
	require.Contains(t, run(t, "nft", "list", "chain", "ip", "nat", "PREROUTING"), "80 : jump CILIUM_PRE_nat")

	_, command, _ := strings.Cut(err.Error(), ", to delete with: ")
	run(t, "sh", "-c", strings.TrimSuffix(command, ")"))
	require.Contains(t, run(t, "nft", "list", "chain", "ip", "nat", "PREROUTING"), "79 : accept")
	apply(t, c)
	require.NotContains(t, run(t, "nft", "list", "ruleset"), "CILIUM")
}

// 2,000 chains are still one transaction.
func TestCLN9_ManyChains(t *testing.T) {
	enterNetfilter(t, "iptables-nft")
	lines := []string{"*filter"}
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf(":CILIUM_%d - [0:0]", i), fmt.Sprintf("-A FORWARD -j CILIUM_%d", i), fmt.Sprintf("-A CILIUM_%d -j RETURN", i))
	}
	rules(t, "iptables-nft", append(lines, "-A FORWARD -j ACCEPT", "COMMIT")...)
	apply(t, netfilterOnly())
	require.NotContains(t, saved(t, "iptables-nft"), "CILIUM")
	require.Contains(t, saved(t, "iptables-nft"), "-A FORWARD -j ACCEPT")
}
