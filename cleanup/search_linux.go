// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
)

// finder lists one sort of things, and removes them.
type finder struct {
	name  string // plural, for errors
	least string // the smallest scope that it belongs to
	kinds []string

	// find adds owned objects to the inventory.
	find func(context.Context, *search) error

	// remove removes items of its kinds.
	remove remover
}

// finders returns the finders in the order of removal. Others' configurations
// are back before the agent's goes: a directory is at no time without one.
func finders() []finder {
	return []finder{
		{"tc filters", bpfState, []string{kindFilter, kindClsact}, findFilters, singly},
		{"tcx programs", bpfState, []string{kindTCX}, findTCX, singly},
		{"netkit programs", bpfState, []string{kindNetkit}, findNetkit, singly},
		{"xdp programs", bpfState, []string{kindXDP}, findXDP, singly},
		{"cgroup programs", bpfState, []string{kindCgroup}, findCgroupPrograms, singly},
		{"ip rules", allState, []string{kindRule}, findRules, singly},
		{"routes", allState, []string{kindRoute}, findRoutes, singly},
		{"xfrm policies and states", allState, []string{kindXFRMPolicy, kindXFRMState}, findXFRM, singly},
		{"links", allState, []string{kindLink}, findLinks, together(removeLinks)},
		{"network namespaces", allState, []string{kindNetNS}, findNetNS, singly},
		{"iptables-nft rules", allState, []string{kindNFT}, findNFT, together(removeNFT)},
		{"nftables tables", allState, []string{kindNFTable}, findNFTables, singly},
		{"iptables-legacy rules", allState, []string{kindLegacy}, findLegacy, together(removeLegacy)},
		{"ipsets", allState, []string{kindIPSet}, findIPSets, together(removeIPSets)},
		{"pins", bpfState, []string{kindPin, kindPinDir}, findPins, singly},
		{"mounts", allState, []string{kindMount}, findMounts, singly},
		{"state directories", allState, []string{kindStateDir}, findStateDirs, singly},
		{"configurations set aside", allState, []string{kindAside}, findAsides, singly},
		{"files", allState, []string{kindFile}, findFiles, singly},
	}
}

// maxLeft is how many items that are left for the same reason are listed. There may
// be as many foreign ones as the kernel takes, and a reader looks at a few.
const maxLeft = 1000

// search is one call of Inventory: the results of the finders so far.
type search struct {
	*node
	inv      Inventory
	with     [][]string // for each of inv's Items, the names of those with which it goes
	attached map[bpfattach.Program][]int
	left     map[leftGroup]int
	seen     map[filetree.Location]bool // files and directories
}

// leftGroup are items that are left for the same reason.
type leftGroup struct{ kind, why string }

// found lists an item that goes or stays with others, those of them that are found: the last
// name is that of their leader.
func (s *search) found(item Item, with ...string) {
	s.inv.Items, s.with = append(s.inv.Items, item.printable()), append(s.with, with)
}

// foundAttached lists a program that is attached to a link, or to none if the name is empty.
func (s *search) foundAttached(item Item, program bpfattach.Program, link string) {
	s.attached[program] = append(s.attached[program], len(s.inv.Items))
	s.found(item, nameOf(kindLink, link))
}

// nameOf is the name of an item in a list.
func nameOf(kind, object string) string { return Item{Kind: kind, Object: object}.printable().String() }

// group tells each item its leader.
func (s *search) group() {
	items := s.inv.Items
	leader, at := make([]int, len(items)), map[string]int{}
	var lead func(i int) int
	lead = func(i int) int {
		if leader[i] != i {
			leader[i] = lead(leader[i])
		}
		return leader[i]
	}
	for i, item := range items {
		if _, known := at[item.String()]; !known {
			at[item.String()] = i
		}
		leader[i] = at[item.String()]
	}
	for i := range items {
		for _, name := range s.with[i] {
			if other, ok := at[name]; ok {
				leader[lead(i)] = lead(other)
			}
		}
	}
	for i := range items {
		if first := lead(i); first != i {
			items[i].Group = items[first].String()
		}
	}
}

// leave lists an item that is not removed, and why.
func (s *search) leave(item Item, why string) {
	item.Detail, item.object = why, nil
	group := leftGroup{item.Kind, why}
	if s.left[group]++; s.left[group] <= maxLeft {
		s.inv.Left = append(s.inv.Left, item.printable())
	}
}

// mark remembers the results so far, for reset.
func (s *search) mark() search {
	return search{inv: s.inv, with: s.with, left: maps.Clone(s.left)}
}

// reset drops the results since a mark.
func (s *search) reset(to search) {
	s.inv, s.with, s.left = to.inv, to.with, maps.Clone(to.left)
}

// countLeft lists first how many more items there are than are listed: of a long list,
// a reader sees the start.
func (s *search) countLeft() {
	groups := map[string]Item{}
	for group, n := range s.left {
		if n > maxLeft {
			groups[group.kind+" "+group.why] = Item{Kind: group.kind, Object: fmt.Sprintf("%d that are not listed", n-maxLeft), Detail: group.why}.printable()
		}
	}
	var more []Item
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		more = append(more, groups[name])
	}
	s.inv.Left = append(more, s.inv.Left...)
}

// again reports whether a file or directory was seen before, under whatever
// path: rules may overlap.
func (s *search) again(t *filetree.Tree) bool {
	before := s.seen[t.Location]
	s.seen[t.Location] = true
	return before
}

// policyRouting returns the finders of others' policy routing.
func policyRouting() []finder {
	return []finder{
		{name: "ip rules", find: findRules}, {name: "routes", find: findRoutes},
		{name: "ip rules by marks", find: findMarkedRules},
	}
}

// inventory has the finders look, in their order, as far as they are in scope.
func (l Leftovers) inventory(ctx context.Context, own *owned, finders []finder) (*Inventory, error) {
	n, err := newNode(ctx, l, own)
	if err != nil {
		return &Inventory{}, err
	}
	defer n.close()
	s := &search{node: n, attached: map[bpfattach.Program][]int{}, left: map[leftGroup]int{}, seen: map[filetree.Location]bool{}}
	var errs []error
	for _, f := range finders {
		if l.Scope == bpfState && f.least == allState {
			continue
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("cleanup: find %s: %w", f.name, err))
			break
		}
		if err := f.find(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("cleanup: find %s: %w", f.name, err))
		}
	}
	s.countLeft()
	s.group()
	return &s.inv, errors.Join(errs...)
}
