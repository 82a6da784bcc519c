// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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
	require.EqualError(t, err, "cleanup: remove ipset cilium_used: a rule or another set uses it: device or resource busy")
	require.Equal(t, "cilium_used\n", run(t, "ipset", "list", "-n"))

	rules(t, "iptables-nft", "*filter", "-D FORWARD 1", "COMMIT")
	apply(t, c)
	require.Empty(t, run(t, "ipset", "list"))
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
