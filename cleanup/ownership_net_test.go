// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// A mistake that would own what others have is an error, before anything is
// looked at.
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
		"the default route":     {routes(cleanup.RouteRule{Table: 254, Type: "unicast", Dst: "default"}), "would own other people's routes"},
		"addresses":             {routes(cleanup.RouteRule{Table: 255, Type: "local", Dst: "host", Protocol: 2}), "would own other people's routes"},
		"everybody's blackhole": {routes(cleanup.RouteRule{Table: 254, Type: "blackhole", Dst: "host"}), "would own other people's routes"},
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
		"xfrm of a wider mask":  {xfrm(cleanup.XFRMRule{Mark: cleanup.Mark{Value: 0xd00, Mask: 0xf00}, Masks: []uint32{0xf00, 0x300}}), "mask 0x300 does not hold that of the mark"},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := cleanup.Cleanup{Ownership: c.own, Scope: cleanup.AllState}
			inv, err := c2.Inventory(context.Background())
			require.ErrorContains(t, err, c.want)
			require.Empty(t, inv.Items)
			require.ErrorContains(t, c2.Apply(context.Background()), c.want)
		})
	}
}

// What is only probably an agent's has to be asked for.
func TestCLN2_OnRequest(t *testing.T) {
	require.Empty(t, cleanup.Cilium().NetNS)
	require.Empty(t, cleanup.Cilium().XFRM)
	asked := cleanup.CiliumOnRequest()
	require.Equal(t, cleanup.Ownership{NetNS: []string{"cilium-*", "cni-*"}, XFRM: asked.XFRM}, asked)
	require.Equal(t, "0xd00/0xf00", asked.XFRM[0].Mark.String())
}
