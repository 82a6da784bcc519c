// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

func bpfState(t testing.TB) cleanup.Leftovers {
	return cleanup.Leftovers{Ownership: ours(), Scope: "bpf-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
}

// Each way in which a filter is known to be ours, on both sides of a clsact.
func TestCLN2_FilterNames(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "peer")
	clean := everything(t)
	clsact(t, "eth0")
	want := []string{"clsact qdisc eth0"}
	for i, c := range []struct{ filter, program string }{
		{"", "cil_from_netdev"},
		{"cil_from_netdev-eth0", "renamed"},
		{"cilium-eth0", ""},
		{"", "cil_from_contai"}, // the part that the kernel keeps
		{"bpf_netdev_eth0.o:[from-netdev]", ""},
		{"bpf_network.o:[from-network]", ""},
		{"bpf_host.o:[from-host]", ""},
		{"bpf_lxc.o:[from-container]", ""},
		{"bpf_overlay.o:[from-overlay]", ""},
	} {
		for parent, side := range map[uint32]string{ingress: "ingress", egress: "egress"} {
			filter(t, "eth0", parent, uint16(1+i), c.filter, program(t, ebpf.SchedCLS, c.program))
			want = append(want, "tc filter eth0 "+side+" "+cmp.Or(c.filter, c.program))
		}
	}
	require.ElementsMatch(t, want, objects(inventory(t, bpfState(t)).Items))
	apply(t, bpfState(t))
	require.Equal(t, clean, everything(t))
}

// Names that only resemble ours belong to other owners.
func TestSEC9_NamesThatLookLikeOurs(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	for _, dev := range []string{"eth0", "lxc_acme"} {
		veth(t, dev, dev+"_peer")
		clsact(t, dev)
	}
	for i, c := range []struct{ filter, program string }{
		{"", "ciliumlike"},
		{"", "cilium"},
		{"", "cil_acme"},
		{"", "cil_from_netde"},
		{"", "cil_to_host_x"},
		{"", "bpf_hostile_fw"},
		{"", "bpf_lxc"},
		{"cilium-exporter-by-acme", "acme"},
		{"cil_from_netdev-eth1", "acme"}, // of another link
		{"cil_from_netdev-eth0x", "acme"},
		{"cil_from_netdev-", "acme"},
		{"cil_from_acme-eth0", "acme"},
		{"bpf_host.o:[acme]", "acme"},
		{"bpf_lxc_acme.o:[from-container]", "acme"},
	} {
		for _, dev := range []string{"eth0", "lxc_acme"} {
			filter(t, dev, ingress, uint16(1+i), c.filter, program(t, ebpf.SchedCLS, c.program))
		}
		xdp := fmt.Sprint("x", i)
		veth(t, xdp, xdp+"_peer")
		setXDP(t, xdp, program(t, ebpf.XDP, c.program), 0)
	}
	before := everything(t)
	require.Empty(t, objects(inventory(t, bpfState(t)).Items))
	apply(t, bpfState(t))
	require.Equal(t, before, everything(t))
}

// A program that uses a pinned map of ours, whatever it is called.
func TestCLN2_SEC9_FilterByPinnedMap(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	bpf := bpfDir(t)
	m, pinned := array(t, "x"), array(t, "y")
	veth(t, "eth0", "peer")
	clsact(t, "eth0")
	filter(t, "eth0", ingress, 1, "", program(t, ebpf.SchedCLS, "handle_ingress", pinned))
	filter(t, "eth0", ingress, 2, "", program(t, ebpf.SchedCLS, "foreign", m))
	pinAt(t, pinned, bpf, "tc", "globals", "cilium_calls")
	pinAt(t, m, bpf, "tc", "globals", "foreign_map")
	byPin := program(t, ebpf.SchedCLS, "entry")
	filter(t, "eth0", egress, 1, "", byPin)
	pinAt(t, byPin, bpf, "cilium", "entry")

	filter(t, "eth0", egress, 2, "cil_new_thing-eth0", program(t, ebpf.SchedCLS, "cil_new_thing", pinned))
	c := bpfState(t)
	c.BPFRoots = []string{bpf}
	inv := inventory(t, c)
	require.Equal(t, []string{
		"tc filter eth0 ingress handle_ingress",
		"tc filter eth0 egress entry",
		"tc filter eth0 egress cil_new_thing-eth0",
	}, objects(inv.Items)[:3])
	apply(t, c)
	left := listing(t, "eth0")
	require.Contains(t, left, "foreign")
	require.NotContains(t, left, "handle_ingress")
	require.NotContains(t, left, "entry")
}

func TestCLN6_ForeignFiltersSurvive(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	foreign := program(t, ebpf.SchedCLS, "foreign")
	veth(t, "eth0", "eth1")
	veth(t, "eth2", "eth3")
	for _, dev := range []string{"eth0", "eth1", "eth2", "eth3"} {
		if dev != "eth3" {
			clsact(t, dev)
		}
	}
	filter(t, "eth0", ingress, 2, "foreign", foreign) // beside ours, on the same side
	filter(t, "eth1", egress, 1, "", foreign)         // beside ours, on the other side
	run(t, "tc", "filter", "add", "dev", "eth2", "ingress", "prio", "9", "protocol", "ip",
		"u32", "match", "ip", "dst", "192.0.2.1/32", "flowid", "1:1")
	run(t, "tc", "qdisc", "add", "dev", "eth3", "ingress") // of the older kind
	run(t, "tc", "filter", "add", "dev", "eth3", "parent", "ffff:", "prio", "9", "protocol", "ip",
		"u32", "match", "ip", "dst", "192.0.2.1/32", "flowid", "1:1")
	before := everything(t)

	ours := program(t, ebpf.SchedCLS, "cil_from_netdev")
	filter(t, "eth0", ingress, 1, "", ours)
	filter(t, "eth1", ingress, 1, "", ours)
	filter(t, "eth2", ingress, 1, "", ours)
	filter(t, "eth3", 0xffff0000, 1, "", ours)

	c := bpfState(t)
	inv := inventory(t, c)
	require.Equal(t, []string{
		"tc filter eth0 ingress cil_from_netdev",
		"tc filter eth1 ingress cil_from_netdev",
		"tc filter eth2 ingress cil_from_netdev",
		"tc filter eth3 ingress cil_from_netdev",
	}, sorted(objects(inv.Items)))
	require.Equal(t, []string{"clsact qdisc eth0", "clsact qdisc eth1", "clsact qdisc eth2"}, sorted(objects(inv.Left)))
	apply(t, c)
	require.Equal(t, before, everything(t), "every foreign filter is unchanged")
}

func TestCLN6_EmptyClsactOfOthersSurvives(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "eth1")
	clsact(t, "eth0")
	before := everything(t)
	apply(t, bpfState(t))
	require.Equal(t, before, everything(t))
}

// A filter in its own chain, and a clsact with a foreign chain.
func TestCLN6_FilterChains(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "eth1")
	clsact(t, "eth0")
	run(t, "tc", "filter", "add", "dev", "eth0", "ingress", "chain", "5", "prio", "9", "protocol", "ip",
		"u32", "match", "ip", "dst", "192.0.2.1/32", "flowid", "1:1")
	before := everything(t)
	path := pinAt(t, program(t, ebpf.SchedCLS, "cil_to_netdev"), bpfDir(t), "x")
	for _, chain := range []string{"0", "4", "5"} {
		run(t, "tc", "filter", "add", "dev", "eth0", "ingress", "chain", chain, "prio", "3", "protocol", "all",
			"bpf", "da", "pinned", path)
	}
	apply(t, bpfState(t))
	require.Equal(t, before, everything(t))
}

// A filter block shared by several links: our filter is removed once, and the qdiscs stay with
// the foreign one.
func TestCLN6_SharedBlock(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "eth1")
	for _, dev := range []string{"eth0", "eth1"} {
		run(t, "tc", "qdisc", "add", "dev", dev, "ingress_block", "7", "clsact")
	}
	block := func() string { return run(t, "tc", "filter", "show", "block", "7") }
	path := pinAt(t, program(t, ebpf.SchedCLS, "foreign"), bpfDir(t), "x")
	run(t, "tc", "filter", "add", "block", "7", "prio", "9", "protocol", "all", "bpf", "da", "pinned", path)
	require.NoError(t, netlink.FilterReplace(&netlink.BpfFilter{ // ours has the name of its link, which a block lacks
		FilterAttrs: netlink.FilterAttrs{LinkIndex: -1, Parent: 7, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 10},
		Fd:          program(t, ebpf.SchedCLS, "foreign").FD(), Name: "cil_to_netdev-", DirectAction: true,
	}))
	before := everything(t) + block()
	path = pinAt(t, program(t, ebpf.SchedCLS, "cil_to_netdev"), bpfDir(t), "x")
	run(t, "tc", "filter", "add", "block", "7", "prio", "3", "protocol", "all", "bpf", "da", "pinned", path)

	c := bpfState(t)
	inv := inventory(t, c)
	require.Len(t, inv.Items, 1)
	require.Contains(t, inv.Items[0].Object, "block 7 ")
	require.Equal(t, []string{"clsact qdisc eth0", "clsact qdisc eth1"}, sorted(objects(inv.Left)))
	apply(t, c)
	require.Equal(t, before, everything(t)+block())
}
