// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// requireThingsAgree applies Of to the tools' listing of the node, and compares the result with
// the items found.
func requireThingsAgree(t *testing.T, own cleanup.Ownership, found []cleanup.Item) {
	t.Helper()
	of, err := own.Of(thingsOf(t))
	require.NoError(t, err)
	var named []string
	for _, l := range of.Links {
		named = append(named, "link "+l.Name)
	}
	for _, r := range of.Routes {
		named = append(named, "route "+routeText(r))
	}
	for _, r := range of.Rules {
		named = append(named, fmt.Sprintf("ip rule %d %d", r.Priority, r.Table))
	}
	for _, table := range of.NFTables {
		named = append(named, "nftables table "+table.Family+" "+table.Name)
	}
	for kind, list := range map[string][]string{"ipset": of.IPSets, "pin": of.Pins, "network namespace": of.NetNS} {
		for _, name := range list {
			named = append(named, kind+" "+name)
		}
	}
	var inventoried []string
	for _, item := range found {
		switch item.Kind {
		case "route":
			route, _, _ := strings.Cut(item.Object, " metric ")
			inventoried = append(inventoried, "route "+route)
		case "ip rule":
			words := strings.Fields(item.Object) // IPv4 99: ... lookup 1
			inventoried = append(inventoried, "ip rule "+strings.TrimSuffix(words[1], ":")+" "+words[len(words)-1])
		case "pin", "pin directory":
			inventoried = append(inventoried, "pin "+strings.TrimPrefix(item.Object, cleanup.DefaultBPFRoot+"/"))
		case "link", "ipset", "nftables table", "network namespace":
			inventoried = append(inventoried, item.String())
		}
	}
	require.NotEmpty(t, named)
	require.Equal(t, sorted(inventoried), sorted(named))
}

func routeText(r cleanup.Route) string {
	text := r.Dst.String()
	if r.Type != "unicast" {
		text = r.Type + " " + text
	}
	if r.Gateway.IsValid() {
		text += " via " + r.Gateway.String()
	}
	for _, link := range r.Links {
		text += " dev " + link
	}
	return fmt.Sprintf("%s table %d", text, r.Table)
}

// thingsOf reads the node with its tools. Routes that go with their link are left out, as the
// inventory does.
func thingsOf(t *testing.T) (out cleanup.Things) {
	t.Helper()
	var links []struct {
		Name string `json:"ifname"`
		Info struct {
			Kind string `json:"info_kind"`
		} `json:"linkinfo"`
	}
	jsonOf(t, &links, "ip", "-j", "-d", "link")
	for _, l := range links {
		out.Links = append(out.Links, cleanup.Link{Name: l.Name, Kind: l.Info.Kind})
	}
	for _, family := range []string{"-4", "-6"} {
		out.Routes = append(out.Routes, routesOf(t, family)...)
		out.Rules = append(out.Rules, rulesOf(t, family)...)
	}
	var ruleset struct {
		NFTables []struct{ Table cleanup.NFTable }
	}
	jsonOf(t, &ruleset, "nft", "-j", "list", "tables")
	for _, object := range ruleset.NFTables {
		if object.Table.Name != "" {
			out.NFTables = append(out.NFTables, object.Table)
		}
	}
	out.IPSets = strings.Fields(run(t, "ipset", "list", "-name"))
	out.NetNS = strings.Fields(run(t, "ls", "/var/run/netns"))
	out.Pins = strings.Fields(run(t, "find", cleanup.DefaultBPFRoot, "-mindepth", "1", "-printf", `%P\n`))
	return out
}

func routesOf(t *testing.T, family string) (out []cleanup.Route) {
	t.Helper()
	var routes []struct{ Type, Dst, Dev, Gateway, Table, Protocol string }
	jsonOf(t, &routes, "ip", "-j", "-N", "-d", family, "route", "show", "table", "all")
	types := map[string]string{"1": "unicast", "2": "local", "3": "broadcast", "4": "anycast", "5": "multicast", "6": "blackhole", "7": "unreachable"}
	for _, r := range routes {
		route := cleanup.Route{
			Table: number(t, cmp.Or(r.Table, "254")), Type: cmp.Or(types[r.Type], r.Type),
			Protocol: uint8(number(t, r.Protocol)), Dst: prefixOf(t, family, r.Dst),
		}
		if r.Dev != "" {
			route.Links = []string{r.Dev}
		}
		if r.Gateway != "" {
			route.Gateway = netip.MustParseAddr(r.Gateway)
		}
		withLink := route.Protocol == 2 && (route.Table == 255 || route.Dst.Addr().IsLinkLocalUnicast())
		if !withLink {
			out = append(out, route)
		}
	}
	return out
}

func rulesOf(t *testing.T, family string) (out []cleanup.Rule) {
	t.Helper()
	var rules []struct {
		Priority              uint32
		Not                   json.RawMessage // null if absent
		Fwmark, Fwmask, Table string
		Protocol              string
	}
	jsonOf(t, &rules, "ip", "-j", "-N", "-d", family, "rule")
	for _, r := range rules {
		rule := cleanup.Rule{Priority: r.Priority, Not: r.Not != nil, Table: number(t, r.Table), Protocol: uint8(number(t, r.Protocol))}
		if r.Fwmark != "" {
			rule.Mark = cleanup.Mark{Value: number(t, r.Fwmark), Mask: number(t, r.Fwmask)}
		}
		out = append(out, rule)
	}
	return out
}

// prefixOf reads a destination as ip-route(8) shortens it.
func prefixOf(t *testing.T, family, text string) netip.Prefix {
	t.Helper()
	if text == "default" {
		text = map[string]string{"-4": "0.0.0.0/0", "-6": "::/0"}[family]
	}
	if !strings.Contains(text, "/") {
		addr := netip.MustParseAddr(text)
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	require.NoError(t, err)
	return prefix
}

func number(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 0, 32)
	require.NoError(t, err)
	return uint32(n)
}

func jsonOf(t *testing.T, to any, args ...string) {
	t.Helper()
	out := run(t, args...)
	require.NoError(t, json.Unmarshal([]byte(out), to), "%v: %s", args, out)
}
