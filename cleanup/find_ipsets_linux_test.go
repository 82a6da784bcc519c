// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
)

func TestCLN2_IPSets(t *testing.T) {
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
	inv := listed(t, context.Background(), c)
	require.Equal(t, dirty, run(t, "ipset", "list"))
	require.ElementsMatch(t, []string{"ipset cilium_node_set_v4", "ipset cilium_node_set_v6", "ipset cilium_all"}, objects(inv.Items))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "also where one is in another")
	require.Equal(t, before, run(t, "ipset", "list"))
	apply(t, c)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// Rules of a built-in chain and of another's chain use our sets, by match and by target, in each
// variant of iptables. They stay, and the commands in the error remove them and nothing else.
func TestCLN4_CLN12_ARuleOfOthersThatUsesOurSetIsNamedWithTheCommandThatDeletesIt(t *testing.T) {
	own := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: "ovn-kubernetes", IPSetPrefixes: []string{"ovn40"}}, Scope: "all-state"}
	sets := map[string]string{"iptables-nft": "ovn40v4", "iptables-legacy": "ovn40v4", "ip6tables-nft": "ovn40v6", "ip6tables-legacy": "ovn40v6"}
	tools := slices.Sorted(maps.Keys(sets))
	enterNetfilter(t, append(tools, "ipset")...)
	for set, family := range map[string]string{"ovn40v4": "inet", "ovn40v6": "inet6", "foreign4": "inet", "foreign6": "inet6", "ovn40": "inet"} {
		run(t, "ipset", "create", set, "hash:ip", "family", family)
	}
	all := func() (out string) {
		for _, tool := range tools {
			out += saved(t, tool)
		}
		return out
	}
	for tool, set := range sets {
		rules(t, tool, "*filter", ":MINE - [0:0]", `-A FORWARD -m comment --comment "--match-set `+set+` src" -j ACCEPT`,
			"-A FORWARD -m set --match-set foreign"+set[len(set)-1:]+" src -j ACCEPT", "-A FORWARD -j MINE", "COMMIT")
	}
	clean := all()
	for tool, set := range sets {
		rules(t, tool, "*filter", `-A FORWARD -m comment --comment "why; $(id) not" -m set --match-set `+set+` src -j ACCEPT`, "-A MINE -j SET --add-set "+set+" dst", "COMMIT")
	}
	before := all()
	err := own.Apply(t.Context())
	require.ErrorIs(t, err, unix.EBUSY)
	require.Equal(t, before, all(), "no rule is removed for a set")
	require.Equal(t, "foreign4\nforeign6\novn40v4\novn40v6\n", run(t, "sh", "-c", "ipset list -n | sort"), "the rest goes")
	for tool, set := range sets {
		require.ErrorContains(t, err, "remove ipset "+set+": device or resource busy (used by the rule ")
		matches, adds := tool+` -t filter -D FORWARD -m comment --comment "why; \$(id) not" -m set --match-set `+set+` src -j ACCEPT`, tool+" -t filter -D MINE -j SET --add-set "+set+" dst"
		require.ErrorContains(t, err, " of chain FORWARD in table filter, to delete with: "+matches)
		require.ErrorContains(t, err, `the rule "-j SET --add-set `+set+` dst" of chain MINE in table filter, to delete with: `+adds)
		run(t, "sh", "-c", matches)
		run(t, "sh", "-c", adds)
	}
	require.Equal(t, clean, all())
	apply(t, own)
	require.Equal(t, "foreign4\nforeign6\n", run(t, "sh", "-c", "ipset list -n | sort"))
}

// A host with plain names alone has no tool of another name, and of many rules some are listed.
// What no tool of iptables shows is said, and not guessed.
func TestCLN12_TheCommandIsOneThatTheHostHas(t *testing.T) {
	enterNetfilter(t, "ipset", "iptables-nft")
	run(t, "ipset", "create", "ovn40subnets", "hash:ip")
	run(t, "ipset", "create", "ovn40member", "hash:ip")
	run(t, "ipset", "create", "foreign", "list:set")
	run(t, "ipset", "add", "foreign", "ovn40member")
	rules(t, "iptables-nft", append(append([]string{"*filter"}, slices.Repeat([]string{"-A FORWARD -m set --match-set ovn40subnets src -j ACCEPT"}, 7)...), "COMMIT")...)
	restore := toolsOnly(t, map[string]string{"iptables": "xtables-nft-multi", "iptables-save": "xtables-nft-multi", "iptables-restore": "xtables-nft-multi"})
	err := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: "ovn-kubernetes", IPSetPrefixes: []string{"ovn40"}}, Scope: "all-state"}.Apply(t.Context())
	restore()
	require.ErrorContains(t, err, ", to delete with: iptables -t filter -D FORWARD -m set --match-set ovn40subnets src -j ACCEPT; ")
	require.ErrorContains(t, err, "; 2 more)")
	require.ErrorContains(t, err, "remove ipset ovn40member: device or resource busy (used by another set, or a rule that no tool of iptables on the host lists)")
}
