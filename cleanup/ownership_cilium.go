// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	_ "embed"
	"encoding/json"
	"regexp"
)

//go:embed cilium.json
var ciliumJSON []byte

// Cilium returns the ownership of Cilium, including the names of its older versions.
//
// An endpoint's link is a veth that has the name that Cilium gives (lxc and
// hexadecimal digits), or another name that starts with lxc and a program that
// Cilium attaches to endpoints only. Links of any other name are not owned,
// whatever programs are on them: in chaining mode a pod's link belongs to the
// other CNI, and a nested node's eth0 is a veth with programs of Cilium.
//
// A route that rejects a single address, with the kernel's protocol, is the remainder of
// a deleted endpoint.
//
// Its rules of policy routing have the numbers of pkg/datapath/linux/linux_defaults,
// which are the same in 1.18.3, 1.19.7 and 1.20.2. A cloud's own agent may use the same
// priorities and tables, so a rule is owned only if it has every attribute that Cilium
// writes.
//
// It leaves out objects that others may use: see [CiliumOnRequest] and [CiliumENI].
func Cilium() (own Ownership) {
	// It is valid, as the tests show.
	_ = json.Unmarshal(regexp.MustCompile(`(?m)^\s*//.*`).ReplaceAll(ciliumJSON, nil), &own)
	return own
}

// CiliumOnRequest returns objects that are only probably Cilium's, for callers that ask
// for them explicitly: the network namespaces cilium-* and cni-* (the latter may belong
// to another runtime), and IPsec policies and states with the marks of encryption and
// decryption, in the masks that Cilium writes, none of which has any of the lowest eight
// bits. Nothing else is set.
func CiliumOnRequest() Ownership {
	return Ownership{
		NetNS: []string{"cilium-*", "cni-*"},
		XFRM: []XFRMRule{
			// To decrypt: the direction; with the node.
			{Mark: Mark{Value: 0xd00, Mask: 0xf00}, Masks: []uint32{0xf00, 0xffff0f00}},
			// To encrypt: the policy that drops; with the SPI; with the node.
			{Mark: Mark{Value: 0xe00, Mask: 0xf00}, Masks: []uint32{0xf00, 0xffff0f00, 0xff00, 0xffffff00}},
		},
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
