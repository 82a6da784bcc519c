// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// PlanVersion is the version of the plans that this package makes, and the only one that
// it takes.
const PlanVersion = 1

// Plan lists the things that may be removed, reviewed once and then applied to many
// nodes. It identifies them by attributes that are the same on all nodes (names, paths,
// tables, priorities), and never by a number that the kernel assigns, such as a link's
// index, a program's id or a rule's handle.
type Plan struct {
	// Version is [PlanVersion].
	Version int `json:"version"`

	// Agent is the owner of the things ([Ownership].Agent), and Scope the text of the
	// [Scope] in which they were found.
	Agent string `json:"agent,omitempty" yaml:"agent,omitempty"`
	Scope string `json:"scope"`

	// Items are in the order in which they are removed.
	Items []Planned `json:"items"`
}

// Planned is a thing of a [Plan], or several that a pattern matches.
type Planned struct {
	// Kind and Object are those of an [Item].
	Kind   string `json:"kind"`
	Object string `json:"object,omitempty" yaml:"object,omitempty"`

	// Match is a pattern of [path.Match] instead of Object, for names that differ on each
	// node, such as lxc* for the links of pods. [Leftovers.Plan] makes none.
	Match string `json:"match,omitempty" yaml:"match,omitempty"`

	// Count is the number of things with this exact name, such as equal rules; 0 means one.
	Count int `json:"count,omitempty" yaml:"count,omitempty"`

	// Why names, for a reader, the field of the [Ownership] by which the agent owns the
	// thing. Select ignores it.
	Why string `json:"why,omitempty" yaml:"why,omitempty"`
}

// String returns the kind, and the object or the pattern.
func (p Planned) String() string { return p.Kind + " " + p.Object + p.Match }

// ownedBy names the field of an Ownership by which items of a kind are owned.
var ownedBy = map[string]string{
	kindFilter: "programs or filters", kindClsact: "programs", kindTCX: "programs", kindNetkit: "programs", kindXDP: "programs",
	kindCgroup: "programs", kindRule: "rules", kindRoute: "routes", kindXFRMPolicy: "xfrm", kindXFRMState: "xfrm",
	kindLink: "links", kindNetNS: "netNS", kindNFT: "chainPrefixes", kindLegacy: "chainPrefixes", kindNFTable: "nfTables",
	kindIPSet: "ipsetPrefixes", kindPin: "pins", kindPinDir: "pins", kindMount: "mounts", kindStateDir: "stateDirs",
	kindFile: "files", kindAside: "setAside",
}

// Plan returns a plan of all items that an Inventory of these Leftovers has found.
func (l Leftovers) Plan(found *Inventory) Plan {
	p := Plan{Version: PlanVersion, Agent: l.Ownership.Agent, Scope: l.Scope.String(), Items: []Planned{}}
	at := map[string]int{}
	for _, item := range found.Items {
		i, known := at[item.String()]
		if !known {
			i = len(p.Items)
			at[item.String()] = i
			p.Items = append(p.Items, Planned{Kind: item.Kind, Object: item.Object, Why: ownedBy[item.Kind]})
		} else {
			p.Items[i].Count = max(p.Items[i].Count, 1) + 1
		}
	}
	return p
}

// Validate returns an error for each invalid part of the plan: an unknown version, scope
// or kind, or a name listed twice.
func (p Plan) Validate() error {
	if p.Version != PlanVersion {
		return fmt.Errorf("plan: version %d: this program takes version %d", p.Version, PlanVersion)
	}
	var errs []error
	if p.Scope != AllState.String() && p.Scope != BPFState.String() {
		errs = append(errs, fmt.Errorf("plan: scope %q: want %s or %s", p.Scope, AllState, BPFState))
	}
	seen := map[string]bool{}
	for i, item := range p.Items {
		if err := item.validate(); err != nil {
			errs = append(errs, fmt.Errorf("plan: item %d: %w", i+1, err))
		} else if seen[item.String()] {
			errs = append(errs, fmt.Errorf("plan: item %d: %s is listed twice", i+1, item))
		}
		seen[item.String()] = true
	}
	return errors.Join(errs...)
}

func (p Planned) validate() error {
	_, err := path.Match(p.Match, "")
	switch {
	case ownedBy[p.Kind] == "":
		return fmt.Errorf("unknown kind %q", p.Kind)
	case (p.Object == "") == (p.Match == ""):
		return fmt.Errorf("%s: want an object, or a pattern to match", p.Kind)
	case err != nil:
		return fmt.Errorf("%s: match: %w", p, err)
	case p.Count < 0 || p.Count > 0 && p.Match != "":
		return fmt.Errorf("%s: count %d: want the number of things with this name, and none for a pattern", p, p.Count)
	}
	return nil
}

// Select returns the items of an Inventory that the plan names, for Remove, and the parts
// of the plan that were not found. All other items are in Left of the selected Inventory,
// with the reason: the plan does not name the item; more things have its name than were
// reviewed, so that Select cannot tell which are meant; or its removal would also remove
// something that the plan does not name. The plan must be valid.
//
// Things that an inventory does not list by themselves are removed with the thing that
// they are part of: the files of a state directory, the rules of a chain, a link's
// addresses and its other end.
func (p Plan) Select(found *Inventory) (selected *Inventory, missing []Planned) {
	s := p.selection(found)
	for s.leaveHolders() {
	}
	selected = &Inventory{Left: slices.Clone(found.Left)}
	for i, item := range found.Items {
		if why := s.why[i]; why != "" {
			item.Detail, item.object = why, nil
			selected.Left = append(selected.Left, item)
		} else {
			selected.Items = append(selected.Items, item)
		}
	}
	return selected, s.missing
}

// selection is the result of a plan for items: why each one is left, empty if it is not.
type selection struct {
	items   []Item
	why     []string
	missing []Planned
}

func (p Plan) selection(found *Inventory) *selection {
	s := &selection{items: found.Items, why: make([]string, len(found.Items))}
	there := map[string][]int{}
	for i, item := range found.Items {
		s.why[i] = "the plan does not name it"
		there[item.String()] = append(there[item.String()], i)
	}
	for _, planned := range p.Items {
		same := there[planned.String()]
		if planned.Match != "" {
			same = s.matching(planned)
		}
		why := ""
		if n := max(planned.Count, 1); planned.Match == "" && len(same) > n {
			why = fmt.Sprintf("%d things have this name, and the plan lists %d", len(same), n)
		}
		for _, i := range same {
			s.why[i] = why
		}
		if len(same) == 0 {
			s.missing = append(s.missing, planned)
		}
	}
	return s
}

func (s *selection) matching(p Planned) (all []int) {
	for i, item := range s.items {
		if ok, _ := path.Match(p.Match, item.Object); ok && item.Kind == p.Kind {
			all = append(all, i)
		}
	}
	return all
}

// leaveHolders leaves items that hold another item that is left, and reports whether
// there were any.
func (s *selection) leaveHolders() (changed bool) {
	for i, holder := range s.items {
		if s.why[i] != "" || !slices.Contains(holders, holder.Kind) {
			continue
		}
		for k, item := range s.items {
			if s.why[k] != "" && holder.holds(item) {
				s.why[i], changed = "its removal would also remove "+item.String(), true
				break
			}
		}
	}
	return changed
}

// holders are the kinds of items that can hold others.
var holders = []string{kindClsact, kindLink, kindNFT, kindLegacy, kindPinDir, kindMount, kindStateDir}

// holds reports whether item is removed with i, or prevents the removal of i.
func (i Item) holds(item Item) bool {
	switch i.Kind {
	case kindClsact:
		return item.Kind == kindFilter && strings.HasPrefix(item.Object, i.Object+" ")
	case kindLink: // a link's name has no blank
		on := []string{kindFilter, kindTCX, kindNetkit, kindXDP}
		return slices.Contains(on, item.Kind) && strings.HasPrefix(item.Object, i.Object+" ")
	case kindNFT, kindLegacy:
		table, chain, isChain := strings.Cut(i.Object, " chain ")
		return isChain && item.Kind == i.Kind && strings.HasPrefix(item.Object, table+" rule ") && strings.HasSuffix(item.Object, " -> "+chain)
	}
	in := []string{kindPin, kindPinDir, kindMount, kindStateDir, kindFile, kindAside}
	return slices.Contains(in, item.Kind) && strings.HasPrefix(item.Object, i.Object+"/")
}
