// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

// The routing tables of Cilium (RouteTable* of linux_defaults).
const (
	tableIPsec     = 200
	tableVTEP      = 202
	tableToProxy   = 2004
	tableFromProxy = 2005
)

// ciliumRules returns the policy routing rules that Cilium makes in every network, for
// IPv4 and IPv6 alike.
func ciliumRules() []PolicyRule {
	return []PolicyRule{
		// toProxyRule and fromIngressProxyRule of pkg/proxy/routes.go.
		{Mark: Mark{Value: 0x200, Mask: 0xf00}, Table: tableToProxy},
		{Mark: Mark{Value: 0xa00, Mask: 0xf00}, Table: tableFromProxy},

		// fromEgressProxyRule of the same file: with native routing and IPsec.
		{Mark: Mark{Value: 0xb00, Mask: 0xf00}, Priority: 10, Table: tableFromProxy, Protocol: protoKernel},

		// replaceHostRules of pkg/datapath/linux/node.go: to decrypt, and up to 1.18 to
		// encrypt; 1.19 removes the latter at its start, and 1.20 does not know it.
		{Mark: Mark{Value: 0xd00, Mask: 0xf00}, Priority: 1, Table: tableIPsec, Protocol: protoKernel},
		{Mark: Mark{Value: 0xe00, Mask: 0xf00}, Priority: 1, Table: tableIPsec, Protocol: protoKernel},

		// setupRouteToVTEPCidr of daemon/cmd/datapath.go (1.18) and
		// pkg/datapath/vtep/vtep_manager.go: one for each CIDR, with no protocol.
		{To: anyNetwork, Priority: 112, Table: tableVTEP},
		{To: anyHost, Priority: 112, Table: tableVTEP},

		// addENIRules of pkg/datapath/loader/base.go, from 1.20 on addIPv4ENIRules and
		// addIPv6ENIRules. AWS's own agent has the same mark at priority 1024.
		{Mark: Mark{Value: 0x80, Mask: 0x80}, Priority: 109, Table: tableMain, Protocol: protoKernel},
	}
}

// ciliumRoutes returns the routes that Cilium makes through links that are not its own.
func ciliumRoutes() []RouteRule {
	return []RouteRule{
		{Table: tableToProxy, Type: "local", Dst: "default", Link: "lo"},

		// createNodeIPSecInRoute of pkg/datapath/linux/ipsec.go: the pods' networks, by
		// the node's card. Where a VRF has the table, the kernel's own local routes
		// there are to single addresses.
		{Table: tableIPsec, Type: "local", Dst: anyNetwork, Link: anything, Protocol: protoKernel},

		{Table: tableMain, Type: "unreachable", Dst: anyHost, Protocol: protoKernel},
		{Table: tableMain, Type: "blackhole", Dst: anyHost, Protocol: protoKernel},
	}
}

// CiliumENI returns the objects that Cilium makes for the pods' addresses in the modes
// ENI (AWS) and Azure, for callers that ask for them explicitly, since a cloud's own
// agent makes similar ones: rules of priority 20 from the main table to a pod, and of
// 111, 110 (Azure's, and ENI's up to 1.18 in its compatible mode) and 32765 (1.20's,
// while it changes the others) from a pod to one of the tables, and in these the routes
// to the gateway and through it. All of them have the kernel's protocol (Configure and
// gatewayRoutes of pkg/datapath/linux/routing/routing.go).
//
// The tables are those of the node's additional network interfaces: 10 and the number of
// the interface with the priority 111, the index of the link with 110. They must not
// include the table of a VRF, in which the kernel makes routes. Without tables, nothing
// is owned.
func CiliumENI(tables ...uint32) Ownership {
	if len(tables) == 0 {
		return Ownership{}
	}
	own := Ownership{Rules: []PolicyRule{{To: anyHost, Priority: 20, Table: tableMain, Protocol: protoKernel}}}
	for _, table := range tables {
		for _, priority := range []uint32{110, 111} {
			own.Rules = append(own.Rules,
				PolicyRule{From: anyHost, Priority: priority, Table: table, Protocol: protoKernel},
				PolicyRule{From: anyHost, To: anyNetwork, Priority: priority, Table: table, Protocol: protoKernel})
		}
		own.Rules = append(own.Rules, PolicyRule{From: anyHost, Priority: 32765, Table: table, Protocol: protoKernel})
		own.Routes = append(own.Routes,
			RouteRule{Table: table, Type: "unicast", Dst: anyHost, Link: anything, Protocol: protoKernel},
			RouteRule{Table: table, Type: "unicast", Dst: "default", Link: anything, Gateway: anything, Protocol: protoKernel})
	}
	return own
}

// CiliumENITables lists the tables for which [CiliumENI] owns rules from pods. It reads IPv4
// and IPv6 in the calling thread's network namespace.
func CiliumENITables(ctx context.Context) ([]uint32, error) { return ciliumENITables(ctx) }
