// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// routing returns ip's listing of all tables and rules, once the kernel has made what it makes
// with a delay: the states of links, and the route of each address. Multicast routes, which come
// later still, are left out.
func routing(t testing.TB) string {
	t.Helper()
	waitForLinks(t)
	for line := range strings.Lines(run(t, "ip", "-6", "-o", "address", "show", "up")) {
		field := strings.Fields(line) // 2: eth0 inet6 fd09::1/64 ...
		addr, _, _ := strings.Cut(field[3], "/")
		waitFor(t, "local "+addr+" dev "+field[1], "ip", "-6", "route", "show", "table", "local")
	}
	var b strings.Builder
	for _, family := range []string{"-4", "-6"} {
		for line := range strings.Lines(run(t, "ip", "-d", family, "route", "show", "table", "all")) {
			if !strings.HasPrefix(line, "multicast ff00::/8 ") {
				b.WriteString(line)
			}
		}
		b.WriteString(run(t, "ip", "-d", family, "rule", "show"))
	}
	return b.String()
}

// ip runs ip with each command.
func ip(t testing.TB, commands ...string) {
	t.Helper()
	for _, command := range commands {
		run(t, append([]string{"ip"}, strings.Fields(command)...)...)
	}
}

// netOnly cleans up links, routes and rules, and nothing else.
func netOnly() cleanup.Leftovers {
	own := ours()
	own.Pins, own.Programs, own.Filters = nil, nil, nil
	return cleanup.Leftovers{Ownership: own, Scope: "all-state", CgroupRoot: noCgroup}
}

func ofKind(kind string, items []cleanup.Item) []string {
	var out []string
	for _, item := range items {
		if item.Kind == kind {
			out = append(out, item.Object)
		}
	}
	return out
}

// noAddresses stops the kernel from giving links addresses, and so routes, with a delay.
func noAddresses(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/addr_gen_mode", []byte("1"), 0))
}

// foreignRoutes makes a twin of each kind of route and rule of ours.
func foreignRoutes(t testing.TB) {
	t.Helper()
	ip(t,
		"link set dev eth0 up",
		"link set dev eth1 up",
		"addr add 10.9.0.1/24 dev eth0",
		"addr add fd09::1/64 dev eth0 nodad",
		"-4 route add 10.5.0.0/16 dev eth0",
		"-4 route add 10.6.0.0/16 via 10.9.0.2 table 2004", // a cloud's own, in our table
		"-4 route add 10.6.0.0/16 dev eth0 table 2005 metric 7",
		"-6 route add fd06::/64 dev eth0 table 2005",
		"-4 route add 10.7.0.0/16 dev eth0 table 4711",
		"-4 route add local 10.8.0.0/16 dev lo table 2004",
		"-4 route add local default dev lo table 77",
		"-4 route add blackhole 10.10.0.0/24 proto bird",
		"-4 route add blackhole 10.10.1.1/32 proto static",
		"-4 route add unreachable 10.10.1.2/32",
		"-4 route add unreachable 10.10.3.0/24 proto kernel",
		"-6 route add unreachable fd10::1/128",
		"-4 rule add pref 100 fwmark 0x200/0xf00 lookup 77",
		"-4 rule add pref 101 fwmark 0x200/0xfff lookup 2004",
		"-4 rule add pref 102 fwmark 0xb00/0xf00 lookup 2004",
		"-4 rule add pref 103 from 10.9.0.0/24 fwmark 0x200/0xf00 lookup 2004",
		"-4 rule add pref 104 not fwmark 0x200/0xf00 lookup 2004",
		"-4 rule add pref 105 fwmark 0xa00/0xf00 blackhole",
		"-6 rule add pref 106 iif eth0 fwmark 0xa00/0xf00 lookup 2005",
		"-6 rule add pref 107 fwmark 0x200/0xf00 lookup 2004 suppress_prefixlength 0",
	)
}

// The kernel shows IPv6 routes that forward nothing as leading through lo. Routes that do
// lead through it are another matter.
func TestCLN2_RoutesThatForwardNothing(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	ip(t, "link set dev lo up")
	ip(t, "-6 route add fd00:1::/64 dev lo table 4711")
	ip(t, "-6 route add local fd00:2::/64 dev lo table 4711")
	before := routing(t)
	var want []string
	for _, typ := range []string{"blackhole", "unreachable", "prohibit", "throw"} {
		ip(t, "-6 route add "+typ+" fd00:3::/64 table 4711 metric "+strconv.Itoa(1+len(want)))
		want = append(want, fmt.Sprintf("%s fd00:3::/64 dev lo table 4711 metric %d", typ, 1+len(want)))
	}
	through := func(link string) cleanup.Leftovers {
		return cleanup.Leftovers{Scope: "all-state", Ownership: cleanup.Ownership{
			Agent: "acme", Routes: []cleanup.RouteRule{{Table: 4711, Type: "any", Dst: "any", Link: link, Gateway: "any"}},
		}}
	}
	require.Empty(t, ofKind("route", inventory(t, through("acme0")).Items))
	c := through("")
	require.Equal(t, want, ofKind("route", inventory(t, c).Items))
	apply(t, c)
	require.Equal(t, before, routing(t))
}

// Routes go by themselves, not only with their links.
func TestCLN3_RoutesGoBeforeLinks(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	noAddresses(t)
	before := routing(t)
	veth(t, "cilium_host", "cilium_net")
	ip(t,
		"link set dev cilium_net up",
		"link set dev cilium_host up",
		"-4 route add 10.0.1.0/24 dev cilium_host table 2005",
		"-6 route add fd00:1::/64 dev cilium_host",
		"nexthop add id 7 dev cilium_host", "-4 route add 10.0.7.0/24 nhid 7",
		"-6 nexthop add id 8 via fe80::1 dev cilium_host", "-6 route add fd00:7::/64 nhid 8",
		"-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004",
	)
	c := netOnly()
	var order []string
	c.Progress = func(_, _ int, item string, err error) {
		require.NoError(t, err)
		order = append(order, item)
		if strings.HasPrefix(item, "route fd00:1::") {
			ip(t, "link show dev cilium_host")
			require.NotContains(t, routing(t), "10.0.1.0/24")
			require.NotContains(t, routing(t), "fd00:1::/64")
		}
	}
	require.NoError(t, c.Apply(context.Background()))
	require.Len(t, order, 7)
	require.Equal(t, "ip rule IPv4 9: fwmark 0x200/0xf00 lookup 2004", order[0])
	require.ElementsMatch(t, []string{
		"route 10.0.7.0/24 dev cilium_host table 254",
		"route 10.0.1.0/24 dev cilium_host table 2005",
		"route fd00:1::/64 dev cilium_host table 254 metric 1024",
		"route fd00:7::/64 via fe80::1 dev cilium_host table 254 metric 1024",
	}, order[1:5])
	require.Equal(t, []string{"link cilium_net", "link cilium_host"}, order[5:])
	require.Equal(t, before, routing(t))
}

// The kernel takes the routes of a next hop object with it.
func TestCLN1_ARouteWhoseNextHopHasGone(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	vethUp(t, "cilium_host", "cilium_net")
	for id, family := range []string{"-4", "-6"} {
		ip(t, fmt.Sprintf("%s nexthop add id %d dev cilium_host", family, id+7))
		ip(t, fmt.Sprintf("%s route add %s nhid %d", family, []string{"10.0.7.0/24", "fd00:7::/64"}[id], id+7))
	}
	c := netOnly()
	inv := inventory(t, c)
	require.Len(t, ofKind("route", inv.Items), 2)
	ip(t, "nexthop flush")
	require.NoError(t, c.Remove(context.Background(), inv.Items))
}

// A route has hops through one of our links and through foreign ones: the foreign hops stay,
// although the kernel deletes an IPv4 route together with any of its links.
func TestCLN6_ForeignHopsOfASharedRouteSurvive(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	noAddresses(t)
	vethUp(t, "eth0", "eth1")
	ip(t, "addr add 10.9.0.1/24 dev eth0")
	ip(t,
		// The expected state at the end.
		"-4 route add 10.0.3.0/24 dev eth0 scope global",
		"-4 route append 10.0.3.0/24 dev eth1 src 10.9.0.1",
		"-4 route add 10.0.4.0/24 proto bird metric 7 table 4711 src 10.9.0.1 mtu 1400 nexthop via 10.9.0.2 dev eth0 weight 3 nexthop dev eth1 weight 2",
		"-4 route add 10.0.5.0/24 nexthop via 10.8.0.1 dev eth0 onlink nexthop dev eth1",
		"-6 route add fd00:3::/64 via fe80::1 dev eth0",
		"nexthop add id 7 dev eth0", "nexthop add id 8 group 7",
		"-4 route add 10.0.6.0/24 nhid 8",
	)
	before := routing(t)
	ip(t, "-4 route del 10.0.3.0/24", "-4 route del 10.0.3.0/24", "-4 route del 10.0.4.0/24 table 4711", "-4 route del 10.0.5.0/24", "-6 route del fd00:3::/64", "-4 route del 10.0.6.0/24", "nexthop del id 8")
	vethUp(t, "cilium_host", "cilium_net")
	ip(t,
		"-4 route add 10.0.3.0/24 nexthop dev cilium_host nexthop dev eth0",
		"-4 route append 10.0.3.0/24 dev eth1 src 10.9.0.1",
		"-4 route add 10.0.4.0/24 proto bird metric 7 table 4711 src 10.9.0.1 mtu 1400 nexthop via 10.9.0.2 dev eth0 weight 3 nexthop dev cilium_host weight 9 nexthop dev eth1 weight 2 nexthop dev cilium_net",
		"-4 route add 10.0.5.0/24 nexthop via 10.8.0.1 dev eth0 onlink nexthop dev eth1 nexthop via 10.7.0.1 dev cilium_host onlink",
		"-6 route add fd00:3::/64 nexthop via fe80::1 dev eth0 nexthop via fe80::1 dev cilium_host",
		"nexthop add id 9 dev cilium_host", "nexthop add id 8 group 7/9",
		"-4 route add 10.0.6.0/24 nhid 8",
	)
	c := netOnly()
	inv := inventory(t, c)
	var shared []cleanup.Item
	for _, item := range inv.Items {
		if item.Kind == "route" {
			require.Equal(t, "its hops through foreign links are kept", item.Detail)
			shared = append(shared, item)
		}
	}
	require.Equal(t, []string{
		"route 10.0.3.0/24 dev cilium_host dev eth0 table 254",
		"route 10.0.4.0/24 dev eth0 dev cilium_host dev eth1 dev cilium_net table 4711 metric 7",
		"route 10.0.5.0/24 dev eth0 dev eth1 dev cilium_host table 254",
	}, sorted(objects(shared)))
	require.Len(t, inv.Left, 2)
	for _, item := range inv.Left {
		require.Equal(t, "its hops through foreign links; the others go with their links", item.Detail)
	}
	dealt := false // until then the kernel's hash, whose seed is new at each boot, may choose our hop
	c.Progress = func(_, _ int, item string, err error) {
		require.NoError(t, err)
		dealt = dealt || strings.HasPrefix(item, "route 10.0.3.0/24 ")
		if hop := run(t, "ip", "-4", "route", "get", "10.0.3.1"); dealt {
			require.Contains(t, hop, "dev eth", item)
		}
	}
	apply(t, c)
	require.True(t, dealt)
	lines := func(s string) []string { return sorted(strings.Split(s, "\n")) } // the order within a destination varies
	require.Equal(t, lines(before), lines(routing(t)))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
	require.Equal(t, lines(before), lines(routing(t)), "and nothing is added again")
}

// The kernel accepts no hop through a link that is down.
func TestCLN6_HopsThroughLinksThatAreDown(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	noAddresses(t)
	for _, dev := range []string{"eth0", "eth1"} {
		veth(t, dev, dev+"_peer")
		ip(t, "link set dev "+dev+" up")
		ip(t, "link set dev "+dev+"_peer up")
	}
	vethUp(t, "cilium_host", "cilium_net")
	ip(t, "-4 route add 10.0.3.0/24 nexthop dev cilium_host nexthop dev eth0 nexthop dev eth1")
	ip(t, "-4 route add 10.0.4.0/24 nexthop dev cilium_host nexthop dev eth1")
	ip(t, "link set dev eth1 down")
	c := netOnly()
	inv := inventory(t, c)
	require.Equal(t, []cleanup.Item{{
		Kind: "route", Object: "10.0.4.0/24 dev cilium_host dev eth1 table 254",
		Detail: "the kernel deletes it with the link of ours; the foreign links are down",
	}}, inv.Left)
	require.Equal(t, []string{"10.0.3.0/24 dev cilium_host dev eth0 dev eth1 table 254"}, ofKind("route", inv.Items))
	require.Equal(t, "its hops through foreign links are kept, but for links that are down", inv.Items[0].Detail)
	apply(t, c)
	require.Equal(t, "10.0.3.0/24 dev eth0 \n", run(t, "ip", "-4", "route", "show"))
}

// A route or rule that took the place of the listed one stays.
func TestCLN1_RouteOrRuleThatWasReplacedIsLeft(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	noAddresses(t)
	veth(t, "eth0", "eth1")
	veth(t, "cilium_host", "cilium_net")
	ip(t,
		"link set dev eth1 up", "link set dev eth0 up", "link set dev cilium_net up", "link set dev cilium_host up",
		"-4 route add 10.0.1.0/24 dev cilium_host",
		"-6 route add fd00:1::/64 dev cilium_host",
		"-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004",
		"-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005",
	)
	c := netOnly()
	inv := inventory(t, c)
	require.Len(t, inv.Items, 6)
	ip(t,
		"-4 route replace 10.0.1.0/24 dev eth0",
		"-6 route del fd00:1::/64",
		"-6 route add fd00:1::/64 dev eth0",
		"-4 rule add pref 9 fwmark 0x200/0xf00 from 10.0.0.0/8 lookup 2004",
		"-4 rule del pref 10",
		"-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 77",
		"link set dev cilium_host down", // kernels before 6.2 rename no link that is up
		"link set dev cilium_host name mine",
		"link set dev cilium_net down",
		"link set dev cilium_net name mine2",
	)
	before := routing(t) + everything(t)
	err := c.Remove(context.Background(), inv.Items)
	require.ErrorContains(t, err, "remove ip rule IPv4 9: fwmark 0x200/0xf00 lookup 2004: a more specific rule")
	require.ErrorContains(t, err, "remove link cilium_host: mine has its index")
	require.Equal(t, before, routing(t)+everything(t))

	ip(t, "-4 rule del pref 9 from 10.0.0.0/8")
	ip(t, "-4 rule del pref 9")
	ip(t, "link del dev mine")
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// All rules are looked at once, before the first one is removed: a more specific one that comes
// later is behind the listed one, and stays.
func TestCLN1_ARuleAddedDuringTheRemovalStays(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	ip(t, "-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004")
	ip(t, "-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005")
	before := routing(t)
	c := netOnly()
	inv := inventory(t, c)
	require.Len(t, inv.Items, 2)
	c.Progress = func(done, _ int, _ string, _ error) {
		if done == 1 {
			ip(t, "-4 rule add pref 10 fwmark 0xa00/0xf00 from 10.0.0.0/8 lookup 2005")
		}
	}
	require.NoError(t, c.Remove(t.Context(), inv.Items))
	ip(t, "-4 rule del pref 10 from 10.0.0.0/8")
	ip(t, "-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004")
	ip(t, "-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005")
	require.Equal(t, before, routing(t), "no other rule was deleted")
}

// Neither one of ours that was deleted before, nor one that differs, stands for a rule: of pods'
// rules, of which many have one priority and table, each is deleted by itself.
func TestCLN1_EachOfManyRulesOfOnePriorityIsDeleted(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	before := routing(t)
	for pod := range 3 {
		for _, rule := range []string{"20 to 10.1.0.%d lookup main", "111 from 10.1.0.%d lookup 11", "111 from 10.1.0.%d to 10.0.0.0/8 lookup 11"} {
			ip(t, "-4 rule add proto kernel pref "+fmt.Sprintf(rule, pod))
		}
	}
	ip(t, "-4 rule add pref 20 iif lo to 10.1.0.1 lookup main proto kernel")
	c := netOnly()
	c.Ownership = cleanup.CiliumENI(11)
	err := c.Remove(t.Context(), inventory(t, c).Items)
	require.ErrorContains(t, err, "remove ip rule IPv4 20: to 10.1.0.1/32 lookup 254: a more specific rule")
	ip(t, "-4 rule del pref 20 iif lo")
	require.NotEqual(t, before, routing(t), "the one that could not be told apart")
	apply(t, c)
	require.Equal(t, before, routing(t))
}

// Cilium's agent moves the kernel's own rule.
func TestCLN1_MovedLocalRuleIsPutBack(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	before := routing(t)
	move := func() {
		for _, family := range []string{"-4", "-6"} {
			ip(t, family+" rule add pref 100 lookup local proto kernel")
			ip(t, family+" rule del pref 0")
		}
	}
	move()
	c := netOnly()
	inv := inventory(t, c)
	require.Equal(t, []string{"ip rule IPv4 100: lookup 255", "ip rule IPv6 100: lookup 255"}, objects(inv.Items))
	require.Equal(t, "it is put back, to priority 0", inv.Items[0].Detail)
	apply(t, c)
	require.Equal(t, before, routing(t))
	require.NoError(t, c.Remove(t.Context(), inv.Items), "put back already is success")
	require.Equal(t, before, routing(t))

	move()
	ip(t, "-4 rule add pref 0 lookup local proto kernel") // killed in between
	apply(t, c)
	require.Equal(t, before, routing(t))

	move()
	inv = inventory(t, c)
	ip(t, "-4 rule add pref 200 lookup local proto kernel") // another program moves it on
	ip(t, "-4 rule del pref 100")
	ip(t, "-6 rule add pref 200 lookup local proto kernel")
	ip(t, "-6 rule del pref 100")
	moved := routing(t)
	require.NoError(t, c.Remove(t.Context(), inv.Items))
	require.Equal(t, moved, routing(t))
}

func TestCLN6_RulesLikeTheMovedLocalRuleStay(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	ip(t,
		"-4 rule add pref 100 lookup local",
		"-4 rule add pref 101 lookup local proto kernel",
		"-6 rule add pref 100 iif lo lookup local proto kernel",
		"-6 rule add pref 100 not lookup local proto kernel",
	)
	before := routing(t)
	c := netOnly()
	require.Empty(t, inventory(t, c).Items)
	apply(t, c)
	require.Equal(t, before, routing(t))

	// If the kernel could mistake a foreign rule for ours, both stay, and the node keeps its
	// own.
	ip(t, "-4 rule add pref 100 lookup local proto kernel")
	ip(t, "-4 rule add pref 100 fwmark 0x1 lookup local proto kernel")
	ip(t, "-4 rule del pref 0")
	err := c.Remove(t.Context(), inventory(t, c).Items)
	require.ErrorContains(t, err, "IPv4 100: lookup 255: a more specific rule has the same priority and table")
	require.Contains(t, routing(t), "0:\tfrom all lookup local proto kernel\n")
}

// In a table shared with others, a reader sees the first thousand foreign routes, and their
// number; all of ours are found among them.
func TestSEC6_ForeignRoutesAreCounted(t *testing.T) {
	enter(t, testns.Net)
	noAddresses(t)
	vethUp(t, "cilium_host", "cilium_net")
	var batch strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&batch, "route add blackhole 10.%d.%d.0/24 table 2004\n", i/250, i%250)
	}
	fmt.Fprintln(&batch, "route add 10.99.0.0/16 dev cilium_host table 2004")
	path := filepath.Join(t.TempDir(), "batch")
	require.NoError(t, os.WriteFile(path, []byte(batch.String()), 0o600))
	run(t, "ip", "-batch", path)
	inv := listed(t, t.Context(), netOnly())
	left := ofKind("route", inv.Left)
	require.Len(t, left, 1001)
	require.Equal(t, "500 that are not listed", left[0])
	require.Equal(t, []string{"10.99.0.0/16 dev cilium_host table 2004"}, ofKind("route", inv.Items))
}
