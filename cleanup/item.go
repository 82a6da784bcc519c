// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/remedy"
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

// kinds has each kind, with the capabilities that its removal takes, beside those for files.
var kinds = map[string][]remedy.Capability{
	kindFilter: {remedy.NetAdmin}, kindClsact: {remedy.NetAdmin}, kindTCX: {remedy.NetAdmin}, kindNetkit: {remedy.NetAdmin},
	kindXDP: {remedy.NetAdmin}, kindCgroup: {remedy.NetAdmin, remedy.BPF}, kindRule: {remedy.NetAdmin}, kindRoute: {remedy.NetAdmin},
	kindXFRMPolicy: {remedy.NetAdmin}, kindXFRMState: {remedy.NetAdmin}, kindLink: {remedy.NetAdmin}, kindNetNS: {remedy.SysAdmin},
	kindNFT: {remedy.NetAdmin}, kindLegacy: {remedy.NetAdmin}, kindNFTable: {remedy.NetAdmin}, kindIPSet: {remedy.NetAdmin},
	kindPin: nil, kindPinDir: nil, kindMount: {remedy.SysAdmin}, kindStateDir: nil, kindFile: nil, kindAside: nil,
}

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

	// Group is kind and object of the item with which this one goes or stays, such as
	// "link cilium_host" for a route through it; empty for an item that leads its group.
	Group string `json:"group,omitempty"`

	object any // the identity of what it stands for, comparable
}

// String returns kind and object.
func (i Item) String() string { return i.Kind + " " + i.Object }

// leader returns kind and object of the item that leads the item's group.
func (i Item) leader() string { return cmp.Or(i.Group, i.String()) }

// leads reports whether the item is a link or a chain, also where another leads its group.
func (i Item) leads() bool {
	words := strings.Fields(i.Object) // of netfilter: family, table, and chain or rule
	return i.Kind == kindLink || (i.Kind == kindNFT || i.Kind == kindLegacy) && len(words) > 2 && words[2] == "chain"
}

// verb names what removal does with an item.
func (i Item) verb() string {
	if i.Kind == kindAside {
		return "restore"
	}
	return "remove"
}

// printable returns the item with names quoted if a terminal, or the reader of a plan,
// would change them; a name that looks quoted is quoted too, so that no two are the same.
func (i Item) printable() Item {
	quote := func(s string) string {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(s, `"`) {
			return strconv.Quote(s)
		}
		return s
	}
	i.Object, i.Detail = quote(i.Object), quote(i.Detail)
	return i
}

// name returns the object without the quotes of printable.
func (i Item) name() string {
	if name, err := strconv.Unquote(i.Object); err == nil && i.Object[0] == '"' {
		return name
	}
	return i.Object
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

// section is the items of one kind.
type section struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Items []Item `json:"items"`
}

// sections returns items by kind.
func sections(items []Item) []section {
	out := []section{}
	for _, list := range by(items, func(i Item) string { return i.Kind }) {
		out = append(out, section{list[0].Kind, len(list), list})
	}
	return out
}

// by divides a list into one for each key, in the order of their first elements.
func by[T any](list []T, key func(T) string) (out [][]T) {
	at := map[string]int{}
	for _, element := range list {
		i, ok := at[key(element)]
		if !ok {
			i = len(out)
			at[key(element)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], element)
	}
	return out
}

// groups returns the items that go or stay together, each group's leader first.
func groups(items []Item) [][]Item {
	out := by(items, Item.leader)
	for _, group := range out {
		sort.SliceStable(group, func(i, j int) bool { return group[i].Group == "" && group[j].Group != "" })
	}
	return out
}

// MarshalJSON returns {"count": N, "groups": [{"kind", "count", "items"}],
// "left": [...]}; lists are never null.
func (inv Inventory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Count  int       `json:"count"`
		Groups []section `json:"groups"`
		Left   []Item    `json:"left"`
	}{len(inv.Items), sections(inv.Items), append([]Item{}, inv.Left...)})
}

// WriteText writes the inventory for people: a heading with a count for each kind of
// leader, a line for each group's leader, and beneath it one for each other item of the
// group; then Left, by kind. Below a heading at most fold lines are shown, the last with
// the number of the others; 0 shows everything.
func (inv Inventory) WriteText(w io.Writer, fold int) error {
	var b strings.Builder
	if len(inv.Items) == 0 {
		b.WriteString("nothing to remove\n")
	}
	for _, same := range by(groups(inv.Items), func(group []Item) string { return group[0].Kind }) {
		var lines []string
		for _, group := range same {
			lines = append(lines, group[0].line())
			for _, item := range group[1:] {
				lines = append(lines, "  "+item.Kind+" "+item.line())
			}
		}
		fmt.Fprintf(&b, "%s (%d)\n", same[0][0].Kind, len(lines))
		writeLines(&b, lines, fold)
	}
	if len(inv.Left) > 0 {
		fmt.Fprintf(&b, "left as it is (%d)\n", len(inv.Left))
	}
	for _, s := range sections(inv.Left) {
		var lines []string
		for _, item := range s.Items {
			lines = append(lines, item.Kind+" "+item.line())
		}
		writeLines(&b, lines, fold)
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

func writeLines(b *strings.Builder, lines []string, fold int) {
	for _, line := range folded(lines, fold, "... and %d more") {
		b.WriteString("  " + line + "\n")
	}
}

// folded returns at most fold lines, the last with the number of the others; 0 means all.
func folded(lines []string, fold int, more string) []string {
	if fold == 0 || len(lines) <= fold {
		return lines
	}
	return append(slices.Clip(lines[:fold-1]), fmt.Sprintf(more, len(lines)-fold+1))
}

// changeFold is how many items of one kind Check lists one by one.
const changeFold = 20

// changes returns one line for each item, long lists folded.
func (inv Inventory) changes() []string {
	var out []string
	for _, s := range sections(inv.Items) {
		var lines []string
		for _, item := range s.Items {
			lines = append(lines, item.verb()+" "+item.String())
		}
		out = append(out, folded(lines, changeFold, s.Items[0].verb()+" %d more of kind "+s.Kind)...)
	}
	return out
}
