// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// A rule that would own other owners' objects by mistake is an error, before anything is
// listed.
func TestCLN2_BadOwnershipOfNetworkRemovesNothing(t *testing.T) {
	routes := func(r ...cleanup.RouteRule) cleanup.Ownership { return cleanup.Ownership{Routes: r} }
	rules := func(r ...cleanup.PolicyRule) cleanup.Ownership { return cleanup.Ownership{Rules: r} }
	netns := func(pattern ...string) cleanup.Ownership { return cleanup.Ownership{NetNS: pattern} }
	xfrm := func(m ...cleanup.XFRMRule) cleanup.Ownership { return cleanup.Ownership{XFRM: m} }
	for name, c := range map[string]struct {
		own  cleanup.Ownership
		want string
	}{
		"empty route rule":      {routes(cleanup.RouteRule{}), "want a table, a type and a destination"},
		"route without a type":  {routes(cleanup.RouteRule{Table: 7, Dst: "default"}), "want a table, a type and a destination"},
		"route to anywhere":     {routes(cleanup.RouteRule{Table: 7, Type: "unicast"}), "want a table, a type and a destination"},
		"route of a type":       {routes(cleanup.RouteRule{Table: 7, Type: "sink", Dst: "default"}), `type "sink" is unknown`},
		"multicast route":       {routes(cleanup.RouteRule{Table: 7, Type: "multicast", Dst: "default"}), `type "multicast" is unknown`},
		"route to a name":       {routes(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "all"}), "ParsePrefix"},
		"the default route":     {routes(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "default"}), "would match routes of other owners"},
		"addresses":             {routes(cleanup.RouteRule{Table: 255, Type: "local", Dst: "host", Protocol: 2}), "would match routes of other owners"},
		"everybody's blackhole": {routes(cleanup.RouteRule{Table: 254, Type: "blackhole", Dst: "host"}), "would match routes of other owners"},
		"rule without a mark":   {rules(cleanup.PolicyRule{Table: 2004}), "mark 0x0/0x0: want a value and a mask"},
		"rule without a table":  {rules(cleanup.PolicyRule{Mark: cleanup.Mark{Value: 1, Mask: 1}}), "want a table"},
		"rule without a mask":   {rules(cleanup.PolicyRule{Table: 1, Mark: cleanup.Mark{Value: 1}}), "mark 0x1/0x0: want a value and a mask"},
		"rule of no mark":       {rules(cleanup.PolicyRule{Table: 1, Mark: cleanup.Mark{Mask: 0xf00}}), "unmarked packets"},
		"rule beyond its mask":  {rules(cleanup.PolicyRule{Table: 1, Mark: cleanup.Mark{Value: 0x1200, Mask: 0xf00}}), "outside of the mask"},
		"empty namespace":       {netns(""), `network namespace ""`},
		"any namespace":         {netns("cni-*", "*"), `network namespace "*"`},
		"any letter":            {netns("?x"), `network namespace "?x"`},
		"letters":               {netns("[a-z]*"), `network namespace "[a-z]*"`},
		"a path":                {netns("x/../y"), `network namespace "x/../y"`},
		"the parent":            {netns(".."), `network namespace ".."`},
		"no pattern":            {netns("a[x"), "syntax error in pattern"},
		"any xfrm":              {xfrm(cleanup.XFRMRule{}), "xfrm: mark 0x0/0x0"},
		"xfrm beyond its mask":  {xfrm(cleanup.XFRMRule{Mark: cleanup.Mark{Value: 0xd00, Mask: 0x100}}), "outside of the mask"},
		"xfrm of any mask":      {xfrm(cleanup.XFRMRule{Mark: cleanup.Mark{Value: 0xd00, Mask: 0xf00}}), "want the masks that are written"},
		"xfrm of a wider mask":  {xfrm(cleanup.XFRMRule{Mark: cleanup.Mark{Value: 0xd00, Mask: 0xf00}, Masks: []uint32{0xf00, 0x300}}), "mask 0x300 does not include that of the mark"},
	} {
		t.Run(name, func(t *testing.T) { requireRefused(t, c.own, c.want) })
	}
}

// A rule that matches nothing is a mistake; one that matches everything is a worse one.
func TestSEC9_OwnershipOfNothingOrEverything(t *testing.T) {
	route := func(r cleanup.RouteRule) cleanup.Ownership {
		return cleanup.Ownership{Routes: []cleanup.RouteRule{r}}
	}
	rule := func(p cleanup.PolicyRule) cleanup.Ownership {
		return cleanup.Ownership{Rules: []cleanup.PolicyRule{p}}
	}
	table := func(family, name string) cleanup.Ownership {
		return cleanup.Ownership{NFTables: []cleanup.NFTable{{Family: family, Name: name}}}
	}
	others := "of other owners"
	for name, c := range map[string]struct {
		own  cleanup.Ownership
		want string
	}{
		"table main":            {route(cleanup.RouteRule{Table: 254, Type: "any", Dst: "any", Link: "any", Gateway: "any"}), others},
		"table local":           {route(cleanup.RouteRule{Table: 255, Type: "any", Dst: "any", Link: "any", Gateway: "any", Protocol: 2}), others},
		"static routes":         {route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: "any", Gateway: "any", Protocol: 4}), others},
		"BIRD's through a card": {route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: "enp0s3", Gateway: "any", Protocol: 12}), others},
		"BIRD's through lo":     {route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: "lo", Protocol: 12}), others},
		"all blackholes":        {route(cleanup.RouteRule{Table: 254, Type: "blackhole", Dst: "any", Protocol: 4}), others},
		"no table":              {route(cleanup.RouteRule{Type: "any", Dst: "any", Protocol: 80}), "want a table"},
		"a link of any name":    {route(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "any", Link: "tun*/"}), "is not the name of a link"},
		"a long name":           {route(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "any", Link: "a234567890123456"}), "is not the name of a link"},
		"gateway":               {route(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "any", Gateway: "10.0.0.0/8"}), "gateway: ParseAddr"},
		"gateway with a zone":   {route(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "any", Gateway: "fe80::1%eth0"}), "without a zone"},
		"gateway of another":    {route(cleanup.RouteRule{Table: 7, Type: "unicast", Dst: "fd00::/64", Gateway: "10.0.0.1"}), "no IPv6 route has an IPv4 gateway"},
		"blackhole with one":    {route(cleanup.RouteRule{Table: 7, Type: "blackhole", Dst: "any", Gateway: "10.0.0.1"}), "leads through no link or gateway"},
		"blackhole of a link":   {route(cleanup.RouteRule{Table: 7, Type: "blackhole", Dst: "any", Link: "tun0"}), "leads through no link or gateway"},

		"all unreachable nets": {route(cleanup.RouteRule{Table: 254, Type: "unreachable", Dst: "network", Protocol: 2}), others},
		"all networks":         {route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "network", Link: "any", Protocol: 2}), others},

		"no selector":          {rule(cleanup.PolicyRule{Table: 7}), "want a value and a mask"},
		"not of nothing":       {rule(cleanup.PolicyRule{Table: 7, Not: true, Priority: 5}), "want a mark or a prefix"},
		"from everywhere":      {rule(cleanup.PolicyRule{Table: 7, From: "0.0.0.0/0"}), "rules for every packet"},
		"to everywhere":        {rule(cleanup.PolicyRule{Table: 7, To: "::/0"}), "rules for every packet"},
		"from a name":          {rule(cleanup.PolicyRule{Table: 7, From: "any"}), "from: netip.ParsePrefix"},
		"of both families":     {rule(cleanup.PolicyRule{Table: 7, From: "10.0.0.0/8", To: "fd00::/8"}), "of both families"},
		"the rule to main":     {rule(cleanup.PolicyRule{Table: 254, Priority: 32766}), others},
		"any net to main":      {rule(cleanup.PolicyRule{Table: 254, To: "network", Protocol: 2}), others},
		"of a protocol alone":  {rule(cleanup.PolicyRule{Table: 7, Protocol: 2}), "want a value and a mask"},
		"to main without pref": {rule(cleanup.PolicyRule{Table: 254, From: "10.0.0.0/8"}), others},
		"half a mark":          {rule(cleanup.PolicyRule{Table: 7, Priority: 5, Mark: cleanup.Mark{Value: 1}}), "want a value and a mask"},
		"to no table":          {rule(cleanup.PolicyRule{Priority: 5, From: "10.0.0.0/8"}), "want a table"},

		"no family":       {table("", "acme"), `family "" is not one of`},
		"unknown family":  {table("ipv4", "acme"), `family "ipv4" is not one of`},
		"no name":         {table("ip", ""), "want a name"},
		"iptables' table": {table("ip6", "nat"), "would match the nftables table nat, which is the node's"},
		"the firewall":    {table("inet", "filter"), "would match the nftables table filter, which is the node's"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, c.own.Validate(), c.want)
			require.ErrorContains(t, c.own.Validate(), "cleanup: ownership: ")
		})
	}
	for _, card := range []string{"eth0", "eth0.100", "eno1", "ens3", "enp1s0f0np0", "enP4p65s0", "end0", "enxaabbccddeeff", "wlan0", "wlp2s0", "bond0.5", "br0", "ibp5s0", "lo"} {
		own := route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: card, Gateway: "any", Protocol: 12})
		require.ErrorContains(t, own.Validate(), others, card)
	}
	for _, link := range []string{"tunl0", "vxlan.calico", "cilium_host", "wireguard.cali", "lo0"} {
		own := route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: link, Gateway: "any", Protocol: 12})
		require.NoError(t, own.Validate(), link)
	}
	// Those of linux/rtnetlink.h and of FRR, and their neighbours.
	for protocol, shared := range map[uint8]bool{
		18: true, 19: false, 41: false, 42: true, 43: false, 98: false, 99: true, 100: false, 185: false, 186: true, 198: true, 199: false, 255: false,
	} {
		err := route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: "any", Gateway: "any", Protocol: protocol}).Validate()
		require.Equal(t, shared, err != nil, protocol)
	}
	require.NoError(t, rule(cleanup.PolicyRule{Table: 254, Mark: cleanup.Mark{Value: 1, Mask: 1}}).Validate())
}

// Objects that are only probably an agent's are owned on request only, and those of ENI only in
// the named tables.
func TestCLN2_OnRequest(t *testing.T) {
	require.Empty(t, cleanup.Cilium().NetNS)
	require.Empty(t, cleanup.Cilium().XFRM)
	asked := cleanup.CiliumOnRequest()
	require.Equal(t, cleanup.Ownership{NetNS: []string{"cilium-*", "cni-*"}, XFRM: asked.XFRM}, asked)
	require.Equal(t, cleanup.Mark{Value: 0xd00, Mask: 0xf00}, asked.XFRM[0].Mark)
	require.NoError(t, cleanup.CiliumOnRequest(10, 11).Validate())
	for _, shared := range []uint32{0, 253, 254, 255} {
		require.Error(t, cleanup.CiliumOnRequest(10, shared).Validate(), "table %d", shared)
	}
	for _, rule := range cleanup.Cilium().Rules {
		require.NotContains(t, []uint32{20, 110, 111, 32765}, rule.Priority)
	}
}
