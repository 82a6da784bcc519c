// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

func TestSEC9_SharedTables(t *testing.T) {
	route := func(r cleanup.RouteRule) cleanup.Ownership {
		return cleanup.Ownership{Routes: []cleanup.RouteRule{r}}
	}
	for _, card := range []string{"eth0", "eth0.100", "eno1", "ens3", "enp1s0f0np0", "enP4p65s0", "end0", "enxaabbccddeeff", "wlan0", "wlp2s0", "bond0.5", "br0", "ibp5s0", "lo"} {
		own := route(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "any", Link: card, Gateway: "any", Protocol: 12})
		require.ErrorContains(t, own.Validate(), "of other owners", card)
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
	require.NoError(t, cleanup.Ownership{Rules: []cleanup.PolicyRule{{Table: 254, Mark: cleanup.Mark{Value: 1, Mask: 1}}}}.Validate())
}

// Objects that are only probably an agent's are owned on request only, and those of ENI only in
// the named tables.
func TestCLN2_ObjectsThatAreOnlyProbablyTheAgentsAreOwnedOnRequest(t *testing.T) {
	require.Empty(t, cleanup.Cilium().NetNS)
	require.Empty(t, cleanup.Cilium().XFRM)
	asked := cleanup.CiliumOnRequest()
	require.Equal(t, cleanup.Ownership{NetNS: []string{"cilium-*", "cni-*"}, XFRM: asked.XFRM}, asked)
	require.Equal(t, cleanup.Mark{Value: 0xd00, Mask: 0xf00}, asked.XFRM[0].Mark)
	require.Equal(t, cleanup.Ownership{}, cleanup.CiliumENI(), "no table, nothing of ENI")
	require.NoError(t, cleanup.CiliumENI(10, 11).Validate())
	for _, shared := range []uint32{0, 253, 254, 255} {
		require.Error(t, cleanup.CiliumENI(10, shared).Validate(), "table %d", shared)
	}
	for _, rule := range cleanup.Cilium().Rules {
		require.NotContains(t, []uint32{20, 110, 111, 32765}, rule.Priority)
	}
}
