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

func ExamplePlan() {
	l := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: cleanup.AllState}
	reviewed := l.Plan(&cleanup.Inventory{Items: []cleanup.Item{
		{Kind: "link", Object: "cilium_host", Detail: "veth"},
		{Kind: "ip rule", Object: "IPv4 100: lookup 2005"},
	}})
	onAnotherNode := &cleanup.Inventory{Items: []cleanup.Item{
		{Kind: "link", Object: "cilium_host", Detail: "veth"},
		{Kind: "link", Object: "cilium_vxlan", Detail: "vxlan"},
	}}
	selected, missing := reviewed.Select(onAnotherNode)
	fmt.Println(selected.Items, missing)
	fmt.Println(selected.Left[0], selected.Left[0].Detail)
	// Output:
	// [link cilium_host] [ip rule IPv4 100: lookup 2005]
	// link cilium_vxlan the plan does not name it
}

func TestCLN11_APlanNamesWhatIsTheSameOnEachNode(t *testing.T) {
	inv := sample()
	inv.Items = append(inv.Items, inv.Items[0])
	p := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: cleanup.AllState}.Plan(inv)
	require.NoError(t, p.Validate())
	require.Len(t, p.Items, len(inv.Items)-1)
	require.Equal(t, cleanup.Planned{Kind: "tc filter", Object: "eth0 ingress cil_from_netdev", Count: 2, Why: "programs or filters"}, p.Items[0])
	text, err := json.Marshal(p)
	require.NoError(t, err)
	for _, drawn := range []string{"handle", "program 12", "pref"} {
		require.NotContains(t, string(text), drawn)
	}
	for _, item := range p.Items {
		require.NotEmpty(t, item.Why, item)
	}
	selected, missing := p.Select(inv)
	require.Empty(t, missing)
	require.Equal(t, inv.Items, selected.Items)
	require.Equal(t, inv.Left, selected.Left)
}

func TestCLN11_WhatAPlanSelects(t *testing.T) {
	for name, c := range map[string]struct {
		plan, found []string // KIND: OBJECT; in a plan also KIND: OBJECT xN or KIND~ PATTERN
		left        map[string]string
		missing     []string
	}{
		"all of it":      {[]string{"link: a", "link: b"}, []string{"link: a", "link: b"}, nil, nil},
		"part of it":     {[]string{"link: a"}, []string{"link: a", "link: b"}, map[string]string{"link b": "the plan does not name it"}, nil},
		"not there":      {[]string{"link: a", "link: b"}, []string{"link: a"}, nil, []string{"link b"}},
		"another kind":   {[]string{"file: /a"}, []string{"mount: /a"}, map[string]string{"mount /a": "the plan does not name it"}, []string{"file /a"}},
		"a pattern":      {[]string{"link~ lxc*"}, []string{"link: lxc1", "link: lxc2", "link: eth0"}, map[string]string{"link eth0": "the plan does not name it"}, nil},
		"a pattern's /":  {[]string{"pin~ /b/*"}, []string{"pin: /b/x", "pin: /b/c/y"}, map[string]string{"pin /b/c/y": "the plan does not name it"}, nil},
		"no such match":  {[]string{"link~ lxc*"}, []string{"link: eth0"}, map[string]string{"link eth0": "the plan does not name it"}, []string{"link lxc*"}},
		"fewer of them":  {[]string{"ip rule: r x3"}, []string{"ip rule: r", "ip rule: r"}, nil, nil},
		"more of them":   {[]string{"ip rule: r"}, []string{"ip rule: r", "ip rule: r"}, map[string]string{"ip rule r": "2 things have this name, and the plan lists 1"}, nil},
		"on a qdisc":     {[]string{"clsact qdisc: e"}, []string{"tc filter: e ingress f", "clsact qdisc: e", "clsact qdisc: e1"}, map[string]string{"tc filter e ingress f": "the plan does not name it", "clsact qdisc e": "its removal would also remove tc filter e ingress f", "clsact qdisc e1": "the plan does not name it"}, nil},
		"on a link":      {[]string{"link: e"}, []string{"xdp program: e f", "link: e"}, map[string]string{"xdp program e f": "the plan does not name it", "link e": "its removal would also remove xdp program e f"}, nil},
		"of another":     {[]string{"link: e"}, []string{"xdp program: e1 f", "link: e"}, map[string]string{"xdp program e1 f": "the plan does not name it"}, nil},
		"to a chain":     {[]string{"iptables-nft: ip nat chain C"}, []string{"iptables-nft: ip nat rule P -> C", "iptables-nft: ip nat chain C"}, map[string]string{"iptables-nft ip nat rule P -> C": "the plan does not name it", "iptables-nft ip nat chain C": "its removal would also remove iptables-nft ip nat rule P -> C"}, nil},
		"in a directory": {[]string{"state directory: /d", "mount: /d/m"}, []string{"mount: /d/m", "mount: /d/m/n", "state directory: /d"}, map[string]string{"mount /d/m/n": "the plan does not name it", "mount /d/m": "its removal would also remove mount /d/m/n", "state directory /d": "its removal would also remove mount /d/m"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := cleanup.Plan{Version: cleanup.PlanVersion, Scope: "all-state"}
			for _, text := range c.plan {
				var item cleanup.Planned
				text, n, _ := strings.Cut(text, " x")
				_, _ = fmt.Sscan(n, &item.Count)
				if kind, pattern, ok := strings.Cut(text, "~ "); ok {
					item.Kind, item.Match = kind, pattern
				} else {
					item.Kind, item.Object, _ = strings.Cut(text, ": ")
				}
				p.Items = append(p.Items, item)
			}
			require.NoError(t, p.Validate())
			var found cleanup.Inventory
			for _, text := range c.found {
				kind, object, _ := strings.Cut(text, ": ")
				found.Items = append(found.Items, cleanup.Item{Kind: kind, Object: object})
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
			var names []string
			for _, m := range missing {
				names = append(names, m.String())
			}
			require.Equal(t, c.missing, names)
		})
	}
}

func TestCLN11_APlanThatIsNotValid(t *testing.T) {
	item := func(change func(*cleanup.Planned)) cleanup.Plan {
		p := cleanup.Planned{Kind: "link", Object: "x"}
		change(&p)
		return cleanup.Plan{Version: 1, Scope: "bpf-state", Items: []cleanup.Planned{p}}
	}
	require.NoError(t, item(func(*cleanup.Planned) {}).Validate())
	for want, p := range map[string]cleanup.Plan{
		"plan: version 0: this program takes version 1":         {},
		"plan: version 2: this program takes version 1":         {Version: 2, Scope: "all-state"},
		`plan: scope "all": want all-state or bpf-state`:        {Version: 1, Scope: "all"},
		`plan: item 1: unknown kind "lnik"`:                     item(func(p *cleanup.Planned) { p.Kind = "lnik" }),
		"plan: item 1: link: want an object, or a pattern":      item(func(p *cleanup.Planned) { p.Object = "" }),
		"plan: item 1: link: want an object, or a pattern to m": item(func(p *cleanup.Planned) { p.Match = "y" }),
		"plan: item 1: link [: match: syntax error in pattern":  item(func(p *cleanup.Planned) { p.Object, p.Match = "", "[" }),
		"plan: item 1: link x: count -1":                        item(func(p *cleanup.Planned) { p.Count = -1 }),
		"plan: item 1: link x*: count 2":                        item(func(p *cleanup.Planned) { p.Object, p.Match, p.Count = "", "x*", 2 }),
		"plan: item 2: link x is listed twice": {Version: 1, Scope: "all-state", Items: []cleanup.Planned{
			{Kind: "link", Object: "x"}, {Kind: "link", Object: "x"},
		}},
	} {
		require.ErrorContains(t, p.Validate(), want)
	}
}
