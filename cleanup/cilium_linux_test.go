// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// ciliumNeighbours makes rules and routes of others on eth0, each differing in one respect from
// a rule or route of Cilium's: a cloud agent's, a VRF's, an administrator's.
func ciliumNeighbours(t testing.TB) {
	t.Helper()
	ip(t,
		// The egress proxy's: another priority, table, mask, protocol, selector.
		"-4 rule add pref 11 fwmark 0xb00/0xf00 lookup 2005 proto kernel",
		"-4 rule add pref 10 fwmark 0xb00/0xf00 lookup 2004 proto kernel",
		"-4 rule add pref 10 fwmark 0xb00/0xfff lookup 2005 proto kernel",
		"-4 rule add pref 10 fwmark 0xb00/0xf00 from 10.9.0.0/24 lookup 2006 proto kernel",
		"-6 rule add pref 10 fwmark 0xb00/0xf00 lookup 2005",
		"-6 rule add pref 10 iif eth0 fwmark 0xb00/0xf00 lookup 2006 proto kernel",
		// IPsec's.
		"-4 rule add pref 2 fwmark 0xd00/0xf00 lookup 200 proto kernel",
		"-4 rule add pref 2 fwmark 0xe00/0xf00 lookup 200 proto kernel",
		"-4 rule add pref 1 fwmark 0xd00/0xf00 lookup 201 proto kernel",
		"-4 rule add pref 1 fwmark 0xc00/0xf00 lookup 200 proto kernel",
		"-4 rule add pref 1 fwmark 0xe00/0xff00 lookup 200 proto kernel",
		"-6 rule add pref 1 fwmark 0xd00/0xf00 lookup 200 proto static",
		"-6 rule add pref 1 fwmark 0xe00/0xf00 lookup 200 proto static",
		// A VTEP's. Unless it comes first, the kernel mistakes the plainest for the others.
		"-4 rule add pref 112 lookup 202",
		"-4 rule add pref 113 to 10.77.0.0/16 lookup 202",
		"-4 rule add pref 113 to 10.77.0.1 lookup 202",
		"-4 rule add pref 112 to 10.77.0.0/16 lookup 203",
		"-4 rule add pref 112 from 10.77.0.0/16 lookup 202",
		"-4 rule add pref 112 to 10.78.0.0/16 from 10.9.0.0/24 lookup 202",
		"-4 rule add pref 112 to 10.79.0.0/16 fwmark 0x1 lookup 202",
		// ENI's for node ports, and AWS's own.
		"-4 rule add pref 1024 fwmark 0x80/0x80 lookup main",
		"-4 rule add pref 1023 fwmark 0x80/0x80 lookup main proto kernel",
		"-4 rule add pref 109 fwmark 0x80/0x80 lookup 77 proto kernel",
		"-4 rule add pref 109 fwmark 0x80/0x80 lookup main",
		"-6 rule add pref 109 fwmark 0x40/0x40 lookup main proto kernel",
		// ENI's for pods, and AWS's own.
		"-4 rule add pref 512 to 10.0.0.9 lookup main",
		"-4 rule add pref 1536 from 10.0.0.9 lookup 11",
		"-4 rule add pref 1537 from 10.0.0.8 lookup 11 proto kernel",
		"-4 rule add pref 1537 from 10.0.0.8 to 10.9.0.0/16 lookup 11 proto kernel",
		"-4 rule add pref 20 to 10.0.0.8 lookup main",
		"-4 rule add pref 20 to 10.0.8.0/24 lookup main proto kernel",
		"-4 rule add pref 21 to 10.0.0.8 lookup main proto kernel",
		"-4 rule add pref 111 from 10.0.0.8 lookup 11",
		"-4 rule add pref 111 from 10.0.0.8 lookup 12 proto kernel",
		"-4 rule add pref 111 from 10.0.8.0/24 lookup 11 proto kernel",
		"-4 rule add pref 111 from 10.0.0.8 to 10.0.0.7 lookup 11 proto kernel",
		"-4 rule add pref 111 from 10.0.0.8 to 10.9.0.0/16 lookup 11",
		"-4 rule add pref 32765 from 10.0.0.8 lookup 11",
		"-4 rule add pref 32765 from 10.0.0.8 to 10.9.0.0/16 lookup 11 proto kernel",
		// Routes in these tables: others' routes, and those that the kernel makes for a VRF.
		"-4 route add 10.66.0.0/16 dev eth0 table 200",
		"-4 route add 10.67.0.0/16 via 10.9.0.2 dev eth0 table 200 proto kernel",
		"-4 route add local 10.68.0.0/16 dev lo table 200",
		"-4 route add local 10.9.0.1 dev eth0 table 200 proto kernel scope host",
		"-4 route add local default dev lo table 200 proto kernel",
		"-4 route add local 10.69.0.0/16 dev lo table 201 proto kernel",
		"-4 route add 10.66.0.0/16 dev eth0 table 202",
		"-4 route add 10.66.0.0/16 dev eth0 table 11 proto kernel",
		"-4 route add 10.66.0.1 dev eth0 table 11",
		"-4 route add default via 10.9.0.3 dev eth0 table 11 metric 9",
		"-4 route add default via 10.9.0.2 dev eth0 table 12 proto kernel",
		"-4 route add blackhole 10.66.0.2 table 11 proto kernel",
	)
}

// neighbourhood is a node with objects of other owners only.
func neighbourhood(t testing.TB) {
	t.Helper()
	noAddresses(t)
	veth(t, "eth0", "eth1")
	foreignRoutes(t)
	ciliumNeighbours(t)
}

// Each condition of the preset's rules keeps a neighbour's object: without it, one would
// be taken, or the ownership is refused.
func TestCLN6_EachConditionOfCiliumsRulesKeepsANeighbour(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	neighbourhood(t)
	wider := map[string]func(*cleanup.PolicyRule){
		"any priority": func(r *cleanup.PolicyRule) { r.Priority = 0 },
		"any protocol": func(r *cleanup.PolicyRule) { r.Protocol = 0 },
	}
	tested := 0
	for _, rule := range slices.Concat(cleanup.Cilium().Rules, cleanup.CiliumENI(11).Rules) {
		for name, widen := range wider {
			wide := rule
			if widen(&wide); wide == rule || rule.Priority == 110 { // as 111
				continue
			}
			tested++
			c := cleanup.Leftovers{Ownership: cleanup.Ownership{Rules: []cleanup.PolicyRule{wide}}, Scope: "all-state"}
			inv, err := c.Inventory(t.Context())
			require.True(t, err != nil || len(inv.Items) > 0, "%s of %+v takes no neighbour's", name, rule)
		}
	}
	require.Greater(t, tested, 15)
	for _, wide := range []cleanup.RouteRule{
		{Table: 200, Type: "local", Dst: "network", Link: "any"},
		{Table: 200, Type: "local", Dst: "any", Link: "any", Protocol: 2},
		{Table: 200, Type: "local", Dst: "host", Link: "any", Protocol: 2},
		{Table: 200, Type: "any", Dst: "network", Link: "any", Gateway: "any", Protocol: 2},
		{Table: 11, Type: "unicast", Dst: "host", Link: "any"},
		{Table: 11, Type: "any", Dst: "host", Link: "", Protocol: 2},
		{Table: 11, Type: "unicast", Dst: "any", Link: "any", Protocol: 2},
		{Table: 11, Type: "unicast", Dst: "default", Link: "any", Gateway: "any"},
	} {
		c := cleanup.Leftovers{Ownership: cleanup.Ownership{Routes: []cleanup.RouteRule{wide}}, Scope: "all-state"}
		require.NotEmpty(t, inventory(t, c).Items, fmt.Sprintf("%+v", wide))
	}
}
