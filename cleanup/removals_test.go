// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

func ExampleRemovals() {
	l := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: "all-state"}
	reviewed := l.Removals(&cleanup.Inventory{Items: []cleanup.Item{
		{Kind: "tc filter", Object: "cilium_host ingress cil_from_host", Group: "link cilium_host"},
		{Kind: "link", Object: "cilium_host", Detail: "veth"},
		{Kind: "ip rule", Object: "IPv4 100: lookup 2005"},
	}})
	fmt.Println(reviewed.Groups[0].Kind, reviewed.Groups[0].Object, reviewed.Groups[0].Members)
	onAnotherNode := &cleanup.Inventory{Items: []cleanup.Item{
		{Kind: "link", Object: "cilium_host", Detail: "veth"},
		{Kind: "link", Object: "cilium_vxlan", Detail: "vxlan"},
	}}
	selected, missing := reviewed.Select(onAnotherNode)
	fmt.Printf("%s %q\n", selected.Items, missing)
	fmt.Println(selected.Left[0], selected.Left[0].Detail)
	// Output:
	// link cilium_host [tc filter cilium_host ingress cil_from_host]
	// [link cilium_host] ["tc filter cilium_host ingress cil_from_host" "ip rule IPv4 100: lookup 2005"]
	// link cilium_vxlan the plan does not name it
}

func TestCLN11_APlanNamesWhatIsTheSameOnEachNode(t *testing.T) {
	inv := sample()
	again := inv.Items[1]
	again.Group = again.String()
	inv.Items = append(inv.Items, again)
	p := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: "all-state"}.Removals(inv)
	require.NoError(t, p.Validate())
	require.Equal(t, cleanup.Group{Kind: "clsact qdisc", Object: "eth0", Members: []string{"tc filter eth0 ingress cil_from_netdev", "clsact qdisc eth0"}}, p.Groups[0])
	text, err := json.Marshal(p)
	require.NoError(t, err)
	for _, drawn := range []string{"handle", "program 12", "pref"} {
		require.NotContains(t, string(text), drawn)
	}
	selected, missing := p.Select(inv)
	require.Empty(t, missing)
	require.Equal(t, inv.Items, selected.Items)
	require.Equal(t, inv.Left, selected.Left)
}

// An item is KIND: OBJECT, with "< " before it for a member of the last leader; in a plan
// also KIND~ PATTERN.
func TestCLN11_AGroupGoesOrStays(t *testing.T) {
	const unnamed = "the plan does not name it"
	for name, c := range map[string]struct {
		plan, found []string
		left        map[string]string
		missing     []string
	}{
		"all of it":         {[]string{"link: a", "link: b"}, []string{"link: a", "link: b"}, nil, nil},
		"part of it":        {[]string{"link: a"}, []string{"link: a", "link: b"}, map[string]string{"link b": unnamed}, nil},
		"not there":         {[]string{"link: a", "link: b"}, []string{"link: a"}, nil, []string{"link b"}},
		"another kind":      {[]string{"file: /a"}, []string{"mount: /a"}, map[string]string{"mount /a": unnamed}, []string{"file /a"}},
		"the same group":    {[]string{"link: a", "< route: r"}, []string{"link: a", "< route: r"}, nil, nil},
		"a member less":     {[]string{"link: a", "< route: r"}, []string{"link: a"}, nil, []string{"route r"}},
		"a member more":     {[]string{"link: a", "link: b"}, []string{"link: a", "< route: r", "link: b"}, map[string]string{"route r": unnamed, "link a": "it goes with route r, which the plan does not name"}, nil},
		"another leader":    {[]string{"link: a", "< route: r"}, []string{"link: b", "< route: r"}, map[string]string{"link b": unnamed, "route r": "it goes with link b, which the plan does not name"}, []string{"link a"}},
		"no leader":         {[]string{"clsact qdisc: e", "< tc filter: f"}, []string{"tc filter: f"}, nil, []string{"clsact qdisc e"}},
		"two as one":        {[]string{"link: a", "pin: p"}, []string{"link: a", "< pin: p"}, nil, nil},
		"fewer of them":     {[]string{"ip rule: r", "< ip rule: r", "< ip rule: r"}, []string{"ip rule: r", "< ip rule: r"}, nil, []string{"ip rule r"}},
		"more of them":      {[]string{"ip rule: r"}, []string{"ip rule: r", "< ip rule: r"}, map[string]string{"ip rule r": unnamed}, nil},
		"a pattern":         {[]string{"link~ lxc*"}, []string{"link: lxc1", "< route: r", "link: lxc2", "link: eth0"}, map[string]string{"link eth0": unnamed}, nil},
		"a pattern's /":     {[]string{"pin~ /b/*"}, []string{"pin: /b/x", "pin: /b/c/y"}, map[string]string{"pin /b/c/y": unnamed}, nil},
		"no such match":     {[]string{"link~ lxc*"}, []string{"link: eth0"}, map[string]string{"link eth0": unnamed}, []string{"link lxc*"}},
		"named as a match":  {[]string{"link~ [ab]"}, []string{"link: [ab]"}, map[string]string{"link [ab]": unnamed}, []string{"link [ab]"}},
		"of a member":       {[]string{"route~ r*"}, []string{"link: a", "< route: r"}, map[string]string{"link a": unnamed, "route r": unnamed}, []string{"route r*"}},
		"directories":       {[]string{"pin: /b/c/x", "pin directory: /b/c", "pin directory: /b", "pin directory: /bb"}, []string{"pin: /b/c/x", "pin: /b/c/y", "pin directory: /b/c", "pin directory: /b", "pin directory: /bb"}, map[string]string{"pin /b/c/y": unnamed, "pin directory /b/c": "something in it stays", "pin directory /b": "something in it stays"}, nil},
		"an empty one more": {[]string{"pin directory: /b"}, []string{"pin directory: /b/c", "pin directory: /b"}, map[string]string{"pin directory /b/c": unnamed, "pin directory /b": "something in it stays"}, nil},
		"a name in quotes":  {[]string{"pin directory: /b"}, []string{`pin: "/b/\xff"`, "pin directory: /b"}, map[string]string{`pin "/b/\xff"`: unnamed, "pin directory /b": "something in it stays"}, nil},
		"quoted directory":  {[]string{`pin directory: "/b/\xff"`}, []string{`pin: "/b/\xff/y"`, `pin directory: "/b/\xff"`}, map[string]string{`pin "/b/\xff/y"`: unnamed, `pin directory "/b/\xff"`: "something in it stays"}, nil},
		"a pattern's links": {[]string{"link~ lxc*", "route: r"}, []string{"link: lxc1", "< route: r", "< link: cilium_host"}, map[string]string{"link cilium_host": unnamed, "link lxc1": "it goes with link cilium_host, which the plan does not name", "route r": "it goes with link cilium_host, which the plan does not name"}, nil},
		"a pattern's chain": {[]string{"iptables-nft~ ip nat chain A*", "iptables-nft: ip nat chain C"}, []string{"iptables-nft: ip nat chain C", "< iptables-nft: ip nat chain A1", "iptables-nft: ip nat chain A2", "< iptables-nft: ip nat rule OUTPUT -> A2", "iptables-nft: ip nat chain A3", "< iptables-nft: ip nat chain B"}, map[string]string{"iptables-nft ip nat chain B": unnamed, "iptables-nft ip nat chain A3": "it goes with iptables-nft ip nat chain B, which the plan does not name"}, nil},
		"a pattern's peer":  {[]string{"link~ lxc*"}, []string{"link: lxc1", "< pin: p", "< link: lxc2"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := cleanup.Removals{Version: 1, Scope: "all-state"}
			for _, text := range c.plan {
				kind, object, _ := strings.Cut(text, ": ")
				g := cleanup.Group{Kind: kind, Object: object}
				if kind, pattern, ok := strings.Cut(text, "~ "); ok {
					g = cleanup.Group{Kind: kind, Match: pattern}
				}
				if kind, ok := strings.CutPrefix(kind, "< "); ok {
					leader := &p.Groups[len(p.Groups)-1]
					leader.Members = append(leader.Members, kind+" "+object)
				} else {
					p.Groups = append(p.Groups, g)
				}
			}
			require.NoError(t, p.Validate())
			var found cleanup.Inventory
			var leader string
			for _, text := range c.found {
				kind, object, _ := strings.Cut(text, ": ")
				item := cleanup.Item{Kind: kind, Object: object}
				if kind, ok := strings.CutPrefix(kind, "< "); ok {
					item.Kind, item.Group = kind, leader
				} else {
					leader = item.String()
				}
				found.Items = append(found.Items, item)
			}
			selected, missing := p.Select(&found)
			left := map[string]string{}
			for _, item := range selected.Left {
				left[item.String()] = item.Detail
			}
			if c.left == nil {
				c.left = map[string]string{}
			}
			require.Equal(t, c.left, left)
			for _, item := range selected.Items {
				require.NotContains(t, left, item.String())
			}
			require.Len(t, found.Items, len(selected.Items)+len(selected.Left))
			require.Equal(t, c.missing, missing)
		})
	}
}

func TestCLN11_APlanThatIsNotValid(t *testing.T) {
	group := func(change func(*cleanup.Group)) cleanup.Removals {
		g := cleanup.Group{Kind: "link", Object: "x"}
		change(&g)
		return cleanup.Removals{Version: 1, Scope: "bpf-state", Groups: []cleanup.Group{g}}
	}
	require.NoError(t, group(func(*cleanup.Group) {}).Validate())
	for want, p := range map[string]cleanup.Removals{
		"plan: version 0: this program takes version 1":          {},
		"plan: version 2: this program takes version 1":          {Version: 2, Scope: "all-state"},
		`plan: scope "all": want all-state or bpf-state`:         {Version: 1, Scope: "all"},
		`plan: group 1: unknown kind "lnik"`:                     group(func(g *cleanup.Group) { g.Kind = "lnik" }),
		"plan: group 1: link: want an object, or a pattern":      group(func(g *cleanup.Group) { g.Object = "" }),
		"plan: group 1: link: want an object, or a pattern to m": group(func(g *cleanup.Group) { g.Match = "y" }),
		"plan: group 1: link [: match: syntax error in pattern":  group(func(g *cleanup.Group) { g.Object, g.Match = "", "[" }),
		"plan: group 1: link x*: members: want none":             group(func(g *cleanup.Group) { g.Object, g.Match, g.Members = "", "x*", []string{"route r"} }),
		"plan: group 2: link x is listed twice": {Version: 1, Scope: "all-state", Groups: []cleanup.Group{
			{Kind: "link", Object: "x"}, {Kind: "link", Object: "x"},
		}},
	} {
		require.ErrorContains(t, p.Validate(), want)
	}
}
