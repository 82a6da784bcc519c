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

// Plan is what may be removed, reviewed once and then given to many nodes. It names things
// by what is the same on all of them (names, paths, tables, priorities), and never by a
// number that the kernel draws, such as a link's index, a program's id or a rule's handle.
type Plan struct {
	// Version is [PlanVersion].
	Version int `json:"version"`

	// Agent is whose things they are ([Ownership].Agent), and Scope the text of the
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

	// Match is a pattern of [path.Match] in the place of Object, for names that each node
	// draws, such as lxc* for the links of pods. [Leftovers.Plan] makes none.
	Match string `json:"match,omitempty" yaml:"match,omitempty"`

	// Count is how many things have this very name, such as equal rules; 0 is one.
	Count int `json:"count,omitempty" yaml:"count,omitempty"`

	// Why says to a reader by which field of the [Ownership] it is the agent's. Select
	// does not look at it.
	Why string `json:"why,omitempty" yaml:"why,omitempty"`
}

// String returns the kind, and the object or the pattern.
func (p Planned) String() string { return p.Kind + " " + p.Object + p.Match }

// ownedBy says by which field of an Ownership items of a kind are owned.
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

// Validate returns an error for each thing of the plan that could not be meant: another
// version or scope, a kind that there is not, a name twice.
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
			errs = append(errs, fmt.Errorf("plan: item %d: %s is there twice", i+1, item))
		}
		seen[item.String()] = true
	}
	return errors.Join(errs...)
}

func (p Planned) validate() error {
	_, err := path.Match(p.Match, "")
	switch {
	case ownedBy[p.Kind] == "":
		return fmt.Errorf("there is no kind %q", p.Kind)
	case (p.Object == "") == (p.Match == ""):
		return fmt.Errorf("%s: want an object, or a pattern to match", p.Kind)
	case err != nil:
		return fmt.Errorf("%s: match: %w", p, err)
	case p.Count < 0 || p.Count > 0 && p.Match != "":
		return fmt.Errorf("%s: count %d: want how many have this name, and none for a pattern", p, p.Count)
	}
	return nil
}

// Select returns of what an Inventory has found the items that the plan names, for Remove,
// and what of the plan was not found. The others are among what is Left, with the reason:
// the plan does not name it; more things have the name than were reviewed, of which it
// cannot be told which are meant; or something is in it or on it that the plan does not
// name, and would go with it. The plan must be valid.
//
// What an inventory does not list by itself goes with the thing that it is part of: the
// files of a state directory, the rules of a chain, a link's addresses and its other end.
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

// selection is what a plan makes of items: why each one is left; empty: it is not.
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
			why = fmt.Sprintf("of this name there are %d, and the plan has %d", len(same), n)
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

// leaveHolders leaves what something is in or on that is left, and reports whether that
// was anything.
func (s *selection) leaveHolders() (changed bool) {
	for i, holder := range s.items {
		if s.why[i] != "" || !slices.Contains(holders, holder.Kind) {
			continue
		}
		for k, item := range s.items {
			if s.why[k] != "" && holder.holds(item) {
				s.why[i], changed = "it would take with it "+item.String(), true
				break
			}
		}
	}
	return changed
}

// holders are the kinds of what other items can be in or on.
var holders = []string{kindClsact, kindLink, kindNFT, kindLegacy, kindPinDir, kindMount, kindStateDir}

// holds reports whether item goes with i, or keeps i from going.
func (i Item) holds(item Item) bool {
	switch i.Kind {
	case kindClsact:
		return item.Kind == kindFilter && strings.HasPrefix(item.Object, i.Object+" ")
	case kindLink: // in a link's name is no blank
		on := []string{kindFilter, kindTCX, kindNetkit, kindXDP}
		return slices.Contains(on, item.Kind) && strings.HasPrefix(item.Object, i.Object+" ")
	case kindNFT, kindLegacy:
		table, chain, isChain := strings.Cut(i.Object, " chain ")
		return isChain && item.Kind == i.Kind && strings.HasPrefix(item.Object, table+" rule ") && strings.HasSuffix(item.Object, " -> "+chain)
	}
	in := []string{kindPin, kindPinDir, kindMount, kindStateDir, kindFile, kindAside}
	return slices.Contains(in, item.Kind) && strings.HasPrefix(item.Object, i.Object+"/")
}
