// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// removalsVersion is the version of the plans that this package makes, and the only one that
// it takes.
const removalsVersion = 1

// Removals is a plan of what may be removed, reviewed once and then applied to many nodes.
// It identifies things by attributes that are the same on all nodes (names, paths, tables,
// priorities), and never by a number that the kernel assigns, such as a link's index, a
// program's id or a rule's handle.
type Removals struct {
	// Version is 1.
	Version int `json:"version"`

	// Agent is the owner of the things ([Ownership].Agent), and Scope that of the [Leftovers]
	// with which they were found.
	Agent string `json:"agent,omitempty" yaml:"agent,omitempty"`
	Scope string `json:"scope"`

	// Groups are in the order in which they are removed.
	Groups []Group `json:"groups"`
}

// Group is the items of [Removals] that go or stay together: the leader, such as a link, and
// its members, such as the routes through it, its filters and its peer.
type Group struct {
	// Kind and Object are those of the leader's [Item].
	Kind   string `json:"kind"`
	Object string `json:"object,omitempty" yaml:"object,omitempty"`

	// Match is a pattern of [path.Match] instead of Object, for names that differ on each
	// node, such as lxc* for the links of pods: groups with such a leader go with whatever
	// members they have there. Other links and chains among these, such as a peer, have to be
	// named or match as well. [Leftovers.Removals] makes none.
	Match string `json:"match,omitempty" yaml:"match,omitempty"`

	// Members are kind and object of the others, one with the same name as often as there are
	// such items.
	Members []string `json:"members,omitempty" yaml:"members,omitempty"`
}

// name is the kind, and the object or the pattern.
func (g Group) name() string { return g.Kind + " " + g.Object + g.Match }

// Removals lists all items that an Inventory of these Leftovers has found.
func (l Leftovers) Removals(found *Inventory) Removals {
	r := Removals{Version: removalsVersion, Agent: l.Ownership.Agent, Scope: l.Scope, Groups: []Group{}}
	for _, items := range groups(found.Items) {
		g := Group{Kind: items[0].Kind, Object: items[0].Object}
		for _, item := range items[1:] {
			g.Members = append(g.Members, item.String())
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

// Validate returns an error for each invalid part of the plan: an unknown version, scope
// or kind, or a group listed twice.
func (r Removals) Validate() error {
	if r.Version != removalsVersion {
		return fmt.Errorf("plan: version %d: this program takes version %d", r.Version, removalsVersion)
	}
	var errs []error
	if validScope(r.Scope) != nil {
		errs = append(errs, fmt.Errorf("plan: scope %q: want %s or %s", r.Scope, allState, bpfState))
	}
	seen := map[string]bool{}
	for i, g := range r.Groups {
		if err := g.validate(); err != nil {
			errs = append(errs, fmt.Errorf("plan: group %d: %w", i+1, err))
		} else if seen[g.name()] {
			errs = append(errs, fmt.Errorf("plan: group %d: %s is listed twice", i+1, g.name()))
		}
		seen[g.name()] = true
	}
	return errors.Join(errs...)
}

func (g Group) validate() error {
	_, err := path.Match(g.Match, "")
	_, known := kinds[g.Kind]
	switch {
	case !known:
		return fmt.Errorf("unknown kind %q", g.Kind)
	case (g.Object == "") == (g.Match == ""):
		return fmt.Errorf("%s: want an object, or a pattern to match", g.Kind)
	case err != nil:
		return fmt.Errorf("%s: match: %w", g.name(), err)
	case g.Match != "" && len(g.Members) > 0:
		return fmt.Errorf("%s: members: want none with a pattern, which takes all", g.name())
	}
	return nil
}

// Select returns the items of an Inventory that the plan names, for Remove, and the names
// in the plan that were not found. A group with an item that the plan does not name stays
// as a whole, as does a directory of pins in which something stays: these items are in Left
// of the selected Inventory, with the reason. It must be valid.
//
// Things that an inventory does not list by themselves are removed with the thing that
// they are part of: the files of a state directory, the rules in a chain, a link's
// addresses.
func (r Removals) Select(found *Inventory) (selected *Inventory, missing []string) {
	named, patterns, matched := r.names(), r.patterns(), map[string]bool{}
	unnamed, because := map[string]bool{}, map[string]string{} // items; one of them, by the leader of its group
	for _, group := range groups(found.Items) {
		leaders := patterns.matching(group[0])
		for _, item := range group {
			pattern := leaders
			if item.leads() {
				pattern = patterns.matching(item)
			}
			matched[pattern] = true
			if named[item.String()]--; named[item.String()] < 0 && pattern == "" {
				unnamed[item.String()], because[item.leader()] = true, item.String()
			}
		}
	}
	selected = &Inventory{Left: slices.Clone(found.Left)}
	occupied := map[string]bool{} // directories of pins
	for _, item := range found.Items {
		other, stays := because[item.leader()]
		switch {
		case !stays:
			selected.Items = append(selected.Items, item)
			continue
		case unnamed[item.String()]:
			item.Detail = "the plan does not name it"
		default:
			item.Detail = "it goes with " + other + ", which the plan does not name"
		}
		selected.leave(item, occupied)
	}
	selected.Items = slices.DeleteFunc(selected.Items, func(item Item) bool {
		if item.Kind != kindPinDir || !occupied[item.name()] {
			return false
		}
		item.Detail = "something in it stays"
		selected.leave(item, occupied)
		return true
	})
	for _, g := range r.Groups {
		missing = append(missing, g.missing(named, matched)...)
	}
	return selected, missing
}

// names counts how often the plan has each name.
func (r Removals) names() map[string]int {
	named := map[string]int{}
	for _, g := range r.Groups {
		for _, name := range g.names() {
			named[name]++
		}
	}
	return named
}

// names returns those of the leader and the members; a pattern has none.
func (g Group) names() []string {
	if g.Match != "" {
		return nil
	}
	return append([]string{g.name()}, g.Members...)
}

// patterns are the groups of a plan that have one: few, as each is tried for each leader.
type patterns []Group

func (r Removals) patterns() patterns {
	return slices.DeleteFunc(slices.Clone(r.Groups), func(g Group) bool { return g.Match == "" })
}

// matching returns the first pattern that matches a leader, "" if there is none.
func (p patterns) matching(leader Item) string {
	for _, g := range p {
		if ok, _ := path.Match(g.Match, leader.Object); ok && g.Kind == leader.Kind {
			return g.name()
		}
	}
	return ""
}

// missing returns what remains of the group's names.
func (g Group) missing(named map[string]int, matched map[string]bool) (missing []string) {
	if g.Match != "" && !matched[g.name()] {
		return []string{g.name()}
	}
	for _, name := range g.names() {
		if named[name]--; named[name] >= 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// leave moves an item to Left, and notes the directories of pins that cannot go then.
func (inv *Inventory) leave(item Item, occupied map[string]bool) {
	item.object, item.Group = nil, ""
	inv.Left = append(inv.Left, item)
	if item.Kind != kindPin && item.Kind != kindPinDir {
		return
	}
	for dir := path.Dir(item.name()); len(dir) > 1 && !occupied[dir]; dir = path.Dir(dir) {
		occupied[dir] = true
	}
}
