// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
)

func TestCLN2_IPSets(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset")
	run(t, "ipset", "create", "foreign", "hash:ip")
	run(t, "ipset", "create", "my_cilium_set", "hash:ip")
	run(t, "ipset", "add", "foreign", "10.0.0.1")
	before := run(t, "ipset", "list")
	run(t, "ipset", "create", "cilium_node_set_v4", "hash:ip")
	run(t, "ipset", "create", "cilium_node_set_v6", "hash:ip", "family", "inet6")
	run(t, "ipset", "add", "cilium_node_set_v4", "10.0.0.1")
	run(t, "ipset", "create", "cilium_all", "list:set")
	run(t, "ipset", "add", "cilium_all", "cilium_node_set_v4")
	run(t, "ipset", "add", "cilium_all", "foreign")

	c := netfilterOnly()
	dirty := run(t, "ipset", "list")
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Equal(t, dirty, run(t, "ipset", "list"))
	require.ElementsMatch(t, []string{"ipset cilium_node_set_v4", "ipset cilium_node_set_v6", "ipset cilium_all"}, objects(inv.Items))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "also where one is in another")
	require.Equal(t, before, run(t, "ipset", "list"))
	apply(t, c)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// The set is removed although the kernel releases the rules' references late.
func TestCLN3_RulesGoBeforeTheIPSetsThatTheyUse(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset", "iptables-nft")
	run(t, "ipset", "create", "cilium_node_set_v4", "hash:ip")
	rules(t, "iptables-nft", "*nat", ":CILIUM_POST_nat - [0:0]", "-A POSTROUTING -j CILIUM_POST_nat",
		"-A CILIUM_POST_nat -m set --match-set cilium_node_set_v4 dst -j ACCEPT", "COMMIT")
	apply(t, netfilterOnly())
	require.Empty(t, run(t, "ipset", "list"))
}

func TestCLN4_IPSetInUseIsNamedAndTheRestGoes(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset", "iptables-nft")
	for _, name := range []string{"cilium_a", "cilium_used", "cilium_z"} {
		run(t, "ipset", "create", name, "hash:ip")
	}
	rules(t, "iptables-nft", "*filter", "-A FORWARD -m set --match-set cilium_used dst -j ACCEPT", "COMMIT")
	c := netfilterOnly()
	err := c.Apply(context.Background())
	require.ErrorIs(t, err, unix.EBUSY)
	require.EqualError(t, err, `cleanup: remove ipset cilium_used: device or resource busy (used by the rule "-m set --match-set cilium_used dst -j ACCEPT" of chain FORWARD in table filter, to delete with: iptables-nft -t filter -D FORWARD -m set --match-set cilium_used dst -j ACCEPT)`)
	require.Equal(t, "cilium_used\n", run(t, "ipset", "list", "-n"))

	rules(t, "iptables-nft", "*filter", "-D FORWARD 1", "COMMIT")
	apply(t, c)
	require.Empty(t, run(t, "ipset", "list"))
}

// Rules of a built-in chain and of another's chain use our set, by match and by target, in each
// variant of iptables. They stay, and the commands in the error remove them and nothing else.
func TestCLN12_ARuleOfOthersThatUsesOurSetIsNamedWithTheCommandThatDeletesIt(t *testing.T) {
	t.Parallel()
	own := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: "ovn-kubernetes", IPSetPrefixes: []string{"ovn40"}}, Scope: cleanup.AllState}
	for _, tool := range []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"} {
		t.Run(tool, func(t *testing.T) {
			enterNetfilter(t, "ipset", tool)
			family := map[bool]string{true: "inet6", false: "inet"}[strings.HasPrefix(tool, "ip6")]
			for _, name := range []string{"ovn40subnets", "ovn40", "foreign"} {
				run(t, "ipset", "create", name, "hash:ip", "family", family)
			}
			rules(t, tool, "*filter", ":MINE - [0:0]", `-A FORWARD -m comment --comment "--match-set ovn40subnets src" -j ACCEPT`,
				"-A FORWARD -m set --match-set foreign src -j ACCEPT", "-A FORWARD -j MINE", "COMMIT")
			clean := saved(t, tool)
			rules(t, tool, "*filter", `-A FORWARD -m comment --comment "why; $(id) not" -m set --match-set ovn40subnets src -j ACCEPT`, "-A MINE -j SET --add-set ovn40subnets dst", "COMMIT")
			before := saved(t, tool)

			err := own.Apply(t.Context())
			require.ErrorIs(t, err, unix.EBUSY)
			require.ErrorContains(t, err, "remove ipset ovn40subnets: device or resource busy (used by the rule ")
			require.ErrorContains(t, err, ` of chain FORWARD in table filter, to delete with: `+tool+` -t filter -D FORWARD -m comment --comment "why; \$(id) not" -m set --match-set ovn40subnets src -j ACCEPT; the rule "-j SET --add-set ovn40subnets dst" of chain MINE in table filter`)
			require.Equal(t, before, saved(t, tool), "no rule is removed for it")
			require.Equal(t, "foreign\novn40subnets\n", run(t, "sh", "-c", "ipset list -n | sort"))

			for _, command := range []string{
				tool + ` -t filter -D FORWARD -m comment --comment "why; \$(id) not" -m set --match-set ovn40subnets src -j ACCEPT`, tool + " -t filter -D MINE -j SET --add-set ovn40subnets dst",
			} {
				require.ErrorContains(t, err, ", to delete with: "+command)
				run(t, "sh", "-c", command)
			}
			require.Equal(t, clean, saved(t, tool))
			apply(t, own)
			require.Equal(t, "foreign\n", run(t, "ipset", "list", "-n"))
		})
	}
}

// A host with plain names alone has no tool of another name, and of many rules some are listed.
func TestCLN12_TheCommandIsOneThatTheHostHas(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset", "iptables-nft")
	run(t, "ipset", "create", "ovn40subnets", "hash:ip")
	rules(t, "iptables-nft", append(append([]string{"*filter"}, slices.Repeat([]string{"-A FORWARD -m set --match-set ovn40subnets src -j ACCEPT"}, 7)...), "COMMIT")...)
	restore := toolsOnly(t, map[string]string{"iptables": "xtables-nft-multi", "iptables-save": "xtables-nft-multi", "iptables-restore": "xtables-nft-multi"})
	err := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: "ovn-kubernetes", IPSetPrefixes: []string{"ovn40"}}, Scope: cleanup.AllState}.Apply(t.Context())
	restore()
	require.ErrorContains(t, err, ", to delete with: iptables -t filter -D FORWARD -m set --match-set ovn40subnets src -j ACCEPT; ")
	require.ErrorContains(t, err, "; 2 more)")
}

// What no tool of iptables shows is said, and not guessed.
func TestCLN12_ASetThatAnotherSetUses(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset")
	run(t, "ipset", "create", "ovn40subnets", "hash:ip")
	run(t, "ipset", "create", "foreign", "list:set")
	run(t, "ipset", "add", "foreign", "ovn40subnets")
	err := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: "ovn-kubernetes", IPSetPrefixes: []string{"ovn40"}}, Scope: cleanup.AllState}.Apply(t.Context())
	require.EqualError(t, err, "cleanup: remove ipset ovn40subnets: device or resource busy (used by another set, or a rule that no tool of iptables on the host lists)")
}

func TestCLN1_IPSetThatWasReplacedIsLeft(t *testing.T) {
	t.Parallel()
	enterNetfilter(t, "ipset")
	run(t, "ipset", "create", "cilium_x", "hash:ip")
	c := netfilterOnly()
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	run(t, "ipset", "destroy", "cilium_x")
	run(t, "ipset", "create", "cilium_x", "hash:net")
	require.ErrorContains(t, c.Remove(context.Background(), inv.Items), "remove ipset cilium_x: it is of type hash:net now: another one has taken its place")
	require.Equal(t, "cilium_x\n", run(t, "ipset", "list", "-n"))
}
