// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// An agent that uses native routing has routes through the node's own cards.
func nativeOwnership() cleanup.Ownership {
	return cleanup.Ownership{
		Routes: []cleanup.RouteRule{
			{Table: 254, Type: "any", Dst: "any", Link: "any", Gateway: "any", Protocol: 80},
			{Table: 254, Type: "unicast", Dst: "any", Link: "tun9", Gateway: "any", Protocol: 12},
			{Table: 77, Type: "any", Dst: "any", Link: "any", Gateway: "any"},
			{Table: 78, Type: "unicast", Dst: "10.3.0.0/16", Link: "eth0", Gateway: "10.9.0.2"},
			{Table: 78, Type: "unicast", Dst: "host", Link: "eth0", Gateway: "fd09::2"},
		},
		Rules: []cleanup.PolicyRule{
			{From: "10.3.0.0/16", Table: 78},
			{To: "host", Priority: 512, Table: 254},
			{From: "host", Priority: 1536, Table: 79},
			{Not: true, Mark: cleanup.Mark{Value: 0x200000, Mask: 0x200000}, Priority: 99, Table: 1},
			{Priority: 600, Table: 79},
		},
	}
}

func nativeCards(t testing.TB) {
	t.Helper()
	noAddresses(t)
	ip(t,
		"link add eth0 type veth peer name eth1", "link add tun9 type veth peer name tun8", "link set dev tun8 up",
		"link set dev eth0 up", "link set dev eth1 up", "link set dev tun9 up",
		"addr add 10.9.0.1/24 dev eth0", "addr add fd09::1/64 dev eth0 nodad",
	)
	waitFor(t, "local fd09::1 dev eth0", "ip", "-6", "route", "show", "table", "local")
}

func TestSEC9_NativeRoutingBesideForeignTwins(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	nativeCards(t)
	ip(t,
		"-4 route add default via 10.9.0.2 dev eth0",
		"-4 route add 10.1.1.0/24 via 10.9.0.3 dev eth0 proto 81",
		"-4 route add 10.1.1.0/24 via 10.9.0.3 dev eth0 proto 80 table 76",
		"-4 route add blackhole 10.1.9.0/24 proto bird",
		"-4 route add 10.2.9.0/24 via 10.9.0.3 dev eth0 proto bird",
		"-4 route add 10.2.8.0/24 dev tun9 proto static",
		"-4 route add 10.3.0.0/16 via 10.9.0.3 dev eth0 table 78",
		"-4 route add 10.3.0.0/17 via 10.9.0.2 dev eth0 table 78",
		"-4 route add 10.3.0.0/16 via inet6 fd09::2 dev eth0 table 78 metric 3",
		"-4 route add 10.3.0.0/16 dev eth0 table 78 metric 4 scope link",
		"-6 route add fd03::1 via fd09::3 dev eth0 table 78",
		"-6 route add fd03::/64 via fd09::2 dev eth0 table 78",
		"-4 rule add pref 50 from 10.3.0.0/17 lookup 78",
		"-4 rule add pref 51 from 10.3.0.0/16 to 10.4.0.0/16 lookup 78",
		"-4 rule add pref 52 from 10.3.0.0/16 lookup 76",
		"-4 rule add pref 53 not from 10.3.0.0/16 lookup 78",
		"-4 rule add pref 54 from 10.3.0.0/16 iif eth0 lookup 78",
		"-4 rule add pref 512 to 10.4.0.0/16 lookup main",
		"-4 rule add pref 513 to 10.4.0.1 lookup main",
		"-4 rule add pref 1536 from 10.5.0.0/24 lookup 79",
		"-4 rule add pref 98 not fwmark 0x200000/0x200000 lookup 1",
		"-4 rule add pref 99 fwmark 0x400000/0x400000 lookup 1",
		"-4 rule add pref 601 lookup 79",
		"-6 rule add pref 602 iif eth0 lookup 76",
		"-4 rule add pref 61 from 10.3.0.0/16 iif eth0 ipproto tcp dport 80 lookup 78 suppress_prefixlength 0",
		"-6 rule add pref 600 uidrange 5-7 tos 0x10 lookup 79",
	)
	before := routing(t)
	ip(t,
		"-4 route add 10.1.0.0/24 via 10.9.0.2 dev eth0 proto 80",
		"-4 route add 10.1.1.0/24 via 10.9.0.3 dev eth0 proto 80 metric 5",
		"-4 route add blackhole 10.1.2.0/26 proto 80",
		"-4 route add 10.1.3.0/24 proto 80 nexthop via 10.9.0.2 dev eth0 nexthop dev eth1",
		"-6 route add fd01::/64 via fd09::2 dev eth0 proto 80",
		"-6 route add unreachable fd02::/64 proto 80",
		"-4 route add 10.2.0.0/26 via 10.9.9.9 dev tun9 onlink proto bird",
		"-4 route add default via 10.9.0.2 dev eth0 table 77",
		"-4 route add throw 10.0.0.0/8 table 77",
		"-6 route add default via fd09::2 dev eth0 table 77",
		"-4 route add 10.3.0.0/16 via 10.9.0.2 dev eth0 table 78 metric 9",
		"-4 route add 10.3.4.5 via inet6 fd09::2 dev eth0 table 78",
		"-6 route add fd03::2 via fd09::2 dev eth0 table 78",
		"-4 rule add pref 60 from 10.3.0.0/16 lookup 78",
		"-4 rule add pref 512 to 10.4.0.1 lookup main",
		"-6 rule add pref 512 to fd04::1 lookup main",
		"-4 rule add pref 1536 from 10.5.0.1 lookup 79",
		"-4 rule add pref 99 not fwmark 0x200000/0x200000 lookup 1",
		"-4 rule add pref 600 lookup 79",
	)
	c := cleanup.Leftovers{Ownership: nativeOwnership(), Scope: "all-state", CgroupRoot: noCgroup}
	dirty := routing(t)
	inv := inventory(t, c)
	require.Equal(t, dirty, routing(t), "looking changes nothing")
	require.Equal(t, []string{
		"ip rule IPv4 60: from 10.3.0.0/16 lookup 78",
		"ip rule IPv4 99: not fwmark 0x200000/0x200000 lookup 1",
		"ip rule IPv4 512: to 10.4.0.1/32 lookup 254",
		"ip rule IPv4 600: lookup 79",
		"ip rule IPv4 1536: from 10.5.0.1/32 lookup 79",
		"ip rule IPv6 512: to fd04::1/128 lookup 254",
	}, objects(inv.Items)[:6])
	require.Equal(t, sorted([]string{
		"10.1.0.0/24 via 10.9.0.2 dev eth0 table 254",
		"10.1.1.0/24 via 10.9.0.3 dev eth0 table 254 metric 5",
		"blackhole 10.1.2.0/26 table 254",
		"10.1.3.0/24 dev eth0 dev eth1 table 254",
		"fd01::/64 via fd09::2 dev eth0 table 254 metric 1024",
		"unreachable fd02::/64 dev lo table 254 metric 1024",
		"10.2.0.0/26 via 10.9.9.9 dev tun9 table 254",
		"0.0.0.0/0 via 10.9.0.2 dev eth0 table 77",
		"throw 10.0.0.0/8 table 77",
		"::/0 via fd09::2 dev eth0 table 77 metric 1024",
		"10.3.0.0/16 via 10.9.0.2 dev eth0 table 78 metric 9",
		"10.3.4.5/32 via fd09::2 dev eth0 table 78",
		"fd03::2/128 via fd09::2 dev eth0 table 78 metric 1024",
	}), sorted(ofKind("route", inv.Items)))

	apply(t, c)
	require.Equal(t, before, routing(t), "every foreign route and rule is unchanged")
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
	require.Equal(t, before, routing(t))
}

// A rule that the kernel cannot distinguish from the listed one protects it.
func TestCLN1_RuleBesideAMoreSpecialOneIsLeft(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	nativeCards(t)
	ip(t, "-4 rule add pref 60 from 10.3.0.0/16 lookup 78")
	c := cleanup.Leftovers{Ownership: nativeOwnership(), Scope: "all-state", CgroupRoot: noCgroup}
	inv := inventory(t, c)
	require.Len(t, inv.Items, 1)
	for _, more := range []string{"fwmark 0x1/0x1", "iif eth0", "to 10.4.0.0/16", "proto 99", "suppress_prefixlength 0", "tos 0x10"} {
		ip(t, "-4 rule add pref 60 from 10.3.0.0/16 "+more+" lookup 78")
		before := routing(t)
		require.ErrorContains(t, c.Remove(context.Background(), inv.Items), "a more specific rule has the same priority", more)
		require.Equal(t, before, routing(t), more)
		ip(t, "-4 rule del pref 60 from 10.3.0.0/16 "+more+" lookup 78")
		ip(t, "-4 rule del pref 60")
		ip(t, "-4 rule add pref 60 from 10.3.0.0/16 lookup 78")
	}
	ip(t, "-4 rule del pref 60")
	ip(t, "-4 rule add not pref 60 from 10.3.0.0/16 lookup 78")
	before := routing(t)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
	require.Equal(t, before, routing(t))
}

func TestSEC9_TablesOfNftables(t *testing.T) {
	enterNetfilter(t, "nft")
	run(t, "nft", `add table inet acme; add chain inet acme x { type filter hook input priority 0; counter; };
		add table ip acme2; add table ip6 acm; add table arp acme; add chain arp acme y; add table ip filter; add chain ip filter acme`)
	before := run(t, "nft", "-s", "list", "ruleset")
	dirty := `add table ip acme; add chain ip acme base { type filter hook input priority 0; }; add chain ip acme other;
		add set ip acme s { type ipv4_addr; elements = { 10.0.0.1 }; }; add rule ip acme base ip saddr @s jump other;
		add map ip acme m { type inet_service : verdict; elements = { 80 : jump other }; }; add rule ip acme base tcp dport vmap @m;
		add table ip6 acme; add table arp acme-arp; add table netdev acme; add table bridge acme`
	run(t, "nft", dirty)
	c := cleanup.Leftovers{Scope: "all-state", CgroupRoot: noCgroup, Ownership: cleanup.Ownership{NFTables: []cleanup.NFTable{
		{Family: "ip", Name: "acme"}, {Family: "ip6", Name: "acme"}, {Family: "arp", Name: "acme-arp"},
		{Family: "netdev", Name: "acme"}, {Family: "bridge", Name: "acme"}, {Family: "inet", Name: "none"},
	}}}
	all := run(t, "nft", "-s", "list", "ruleset")
	inv := inventory(t, c)
	require.Equal(t, all, run(t, "nft", "-s", "list", "ruleset"), "looking changes nothing")
	require.ElementsMatch(t, []string{
		"nftables table ip acme", "nftables table ip6 acme", "nftables table arp acme-arp",
		"nftables table netdev acme", "nftables table bridge acme",
	}, objects(inv.Items))

	apply(t, c)
	require.Equal(t, before, run(t, "nft", "-s", "list", "ruleset"))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")

	run(t, "nft", dirty) // later objects with the same names are different ones
	all = run(t, "nft", "-s", "list", "ruleset")
	require.NoError(t, c.Remove(context.Background(), inv.Items))
	require.Equal(t, all, run(t, "nft", "-s", "list", "ruleset"))

	inv = inventory(t, c)
	dropCapability(t, unix.CAP_NET_ADMIN)
	require.ErrorContains(t, c.Remove(context.Background(), inv.Items), "remove nftables table ip acme: netfilter transaction: operation not permitted (needs CAP_NET_ADMIN)")
}
