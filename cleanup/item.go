// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// The kinds of items, as they are printed.
const (
	kindFilter     = "tc filter"
	kindClsact     = "clsact qdisc"
	kindTCX        = "tcx program"
	kindNetkit     = "netkit program"
	kindXDP        = "xdp program"
	kindCgroup     = "cgroup program"
	kindRule       = "ip rule"
	kindRoute      = "route"
	kindXFRMPolicy = "xfrm policy"
	kindXFRMState  = "xfrm state"
	kindLink       = "link"
	kindNetNS      = "network namespace"
	kindNFT        = "iptables-nft"
	kindLegacy     = "iptables-legacy"
	kindNFTable    = "nftables table"
	kindIPSet      = "ipset"
	kindPin        = "pin"
	kindPinDir     = "pin directory"
	kindMount      = "mount"
	kindStateDir   = "state directory"
	kindFile       = "file"
	kindAside      = "configuration set aside"
)

// Item is one thing that [Leftovers.Inventory] found. An Item made in any other way
// cannot be removed.
type Item struct {
	// Kind is a short noun, such as "tc filter", "link" or "pin".
	Kind string `json:"kind"`

	// Object names the thing among those of its kind: "eth0 ingress
	// cil_from_netdev", "cilium_host", "/sys/fs/bpf/cilium/x".
	Object string `json:"object"`

	// Detail is further information for a reader; it may be empty.
	Detail string `json:"detail,omitempty"`

	object object
}

// object is the identity of the object that an item stands for, as a comparable value.
type object interface {
	// remove removes the object, and no other that took its name or number since it was
	// listed. Removing an object that is gone succeeds.
	remove(context.Context, *removal) error
}

// String returns kind and object.
func (i Item) String() string { return i.Kind + " " + i.Object }

// verb names what removal does with an item.
func (i Item) verb() string {
	if i.Kind == kindAside {
		return "restore"
	}
	return "remove"
}

// printable returns the item with names quoted if they contain line breaks or control
// characters of terminals.
func (i Item) printable() Item {
	quote := func(s string) string {
		if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return strconv.Quote(s)
		}
		return s
	}
	i.Object, i.Detail = quote(i.Object), quote(i.Detail)
	return i
}

// Inventory is the result of [Leftovers.Inventory].
type Inventory struct {
	// Items are owned, in the order in which they are removed.
	Items []Item

	// Left are things that were found but are not removed, because they are not owned, or
	// not certainly so; Detail has the reason, and names the part of them that is removed
	// with an item nevertheless. At most 1,000 things with the same reason are listed; an
	// item in front counts the others.
	Left []Item
}

// group is the items of one kind.
type group struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Items []Item `json:"items"`
}

// groups returns items by kind, the kinds in the order of their first item.
func groups(items []Item) []group {
	var out []group
	at := map[string]int{}
	for _, item := range items {
		i, ok := at[item.Kind]
		if !ok {
			i = len(out)
			at[item.Kind] = i
			out = append(out, group{Kind: item.Kind})
		}
		out[i].Count++
		out[i].Items = append(out[i].Items, item)
	}
	return out
}

// MarshalJSON returns {"count": N, "groups": [{"kind", "count", "items"}],
// "left": [...]}; lists are never null.
func (inv Inventory) MarshalJSON() ([]byte, error) {
	doc := struct {
		Count  int     `json:"count"`
		Groups []group `json:"groups"`
		Left   []Item  `json:"left"`
	}{len(inv.Items), groups(inv.Items), inv.Left}
	if doc.Groups == nil {
		doc.Groups = []group{}
	}
	if doc.Left == nil {
		doc.Left = []Item{}
	}
	return json.Marshal(doc)
}

// WriteText writes the inventory for people: a heading with a count for each
// kind and one for Left, a line for each item. Of a kind with more than fold items only the
// first ones are shown, fold lines in all, with the number of the others; 0
// shows everything.
func (inv Inventory) WriteText(w io.Writer, fold int) error {
	var b strings.Builder
	if len(inv.Items) == 0 {
		b.WriteString("nothing to remove\n")
	}
	for _, g := range groups(inv.Items) {
		fmt.Fprintf(&b, "%s (%d)\n", g.Kind, g.Count)
		writeGroup(&b, g.Items, fold, Item.line)
	}
	if len(inv.Left) > 0 {
		fmt.Fprintf(&b, "left as it is (%d)\n", len(inv.Left))
		for _, g := range groups(inv.Left) {
			writeGroup(&b, g.Items, fold, func(i Item) string { return i.Kind + " " + i.line() })
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (i Item) line() string {
	if i.Detail == "" {
		return i.Object
	}
	return i.Object + "  (" + i.Detail + ")"
}

func writeGroup(b *strings.Builder, items []Item, fold int, line func(Item) string) {
	show := items
	if fold > 0 && len(items) > fold {
		show = items[:fold-1]
	}
	for _, item := range show {
		fmt.Fprintf(b, "  %s\n", line(item))
	}
	if more := len(items) - len(show); more > 0 {
		fmt.Fprintf(b, "  ... and %d more\n", more)
	}
}

// changeFold is how many items of one kind Check lists one by one.
const changeFold = 20

// changes returns one line for each item, long lists folded.
func (inv Inventory) changes() []string {
	var out []string
	for _, g := range groups(inv.Items) {
		show := g.Items
		if len(show) > changeFold {
			show = show[:changeFold-1]
		}
		for _, item := range show {
			out = append(out, item.verb()+" "+item.String())
		}
		if more := len(g.Items) - len(show); more > 0 {
			out = append(out, fmt.Sprintf("%s %d more of kind %s", g.Items[0].verb(), more, g.Kind))
		}
	}
	return out
}
