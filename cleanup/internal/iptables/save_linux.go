// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables

import (
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

// Ruleset is the owned part of one family's tables, read line by line from the output of
// iptables-save.
type Ruleset struct {
	Chains map[Chain]int // how many rules are in them
	Jumps  []Rule        // rules in other chains that jump to them

	owned  func(chain string) bool
	family string
	table  string // that the line is about; "" between tables
	quoted bool   // the line before ended within quotes
	seen   map[Rule]int
}

func newRuleset(owned func(chain string) bool, family string) *Ruleset {
	return &Ruleset{owned: owned, family: family, Chains: map[Chain]int{}, seen: map[Rule]int{}}
}

// line reads a line: "*table", ":chain policy [counters]", "-A chain rule",
// "COMMIT" or "# comment". In a table, the chains come before the rules.
func (s *Ruleset) line(line string) {
	switch {
	case s.quoted: // the rest of a rule
		s.quoted = endsQuoted(line, true)
	case strings.HasPrefix(line, "*"):
		s.table = line[1:]
	case line == "COMMIT":
		s.table = ""
	case !slices.Contains(netfilter.Tables(), s.table):
	case strings.HasPrefix(line, ":"):
		name, policy, _ := strings.Cut(line[1:], " ")
		if strings.HasPrefix(policy, "- ") && s.owned(name) {
			s.Chains[Chain{s.family, s.table, name}] = 0
		}
	case strings.HasPrefix(line, "-A "):
		s.quoted = endsQuoted(line, false)
		chain, spec, _ := strings.Cut(line[3:], " ")
		s.rule(chain, spec)
	}
}

// rule notes a rule that is in an owned chain, or jumps to one from another. A
// rule with a line break in it is not noted: iptables-restore could not read it
// either, and the chain that it jumps to is reported as in use.
func (s *Ruleset) rule(chain, spec string) {
	if inside := (Chain{s.family, s.table, chain}); hasKey(s.Chains, inside) {
		s.Chains[inside]++
		return
	}
	if s.quoted || !hasKey(s.Chains, Chain{s.family, s.table, jumpsTo(spec)}) {
		return
	}
	r := Rule{Family: s.family, Table: s.table, Chain: chain, Spec: spec}
	nth := s.seen[r]
	s.seen[r]++
	r.nth = nth
	s.Jumps = append(s.Jumps, r)
}

// end brings the jumps into the order of iptables' tables.
func (s *Ruleset) end() error {
	if s.quoted {
		return errors.New("iptables-save ends within quotes")
	}
	tables := netfilter.Tables()
	sort.SliceStable(s.Jumps, func(i, j int) bool {
		return slices.Index(tables, s.Jumps[i].Table) < slices.Index(tables, s.Jumps[j].Table)
	})
	return nil
}

// endsQuoted reports whether a line ends within double quotes, in which a backslash takes
// the next character's meaning; open reports whether it begins within them.
func endsQuoted(line string, open bool) bool {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '"':
			open = !open
		case line[i] == '\\' && open:
			i++
		}
	}
	return open
}

func hasKey[K comparable, V any](m map[K]V, key K) bool { _, ok := m[key]; return ok }

// jumpsTo returns the target of a rule's jump in its last two words. A rule that jumps to
// a chain ends with the chain's name, and quoted text ends with a quote, which no name
// contains.
func jumpsTo(spec string) string {
	words := strings.Fields(spec)
	if n := len(words); n >= 2 && (words[n-2] == "-j" || words[n-2] == "-g") {
		return words[n-1]
	}
	return ""
}

// SortedChains returns the chains in the order of their tables and names.
func (s *Ruleset) SortedChains() []Chain {
	byName := map[string]Chain{}
	for c := range s.Chains {
		byName[c.Table+" "+c.Name+" "+c.Family] = c
	}
	chains := make([]Chain, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		chains = append(chains, byName[name])
	}
	return chains
}

// deletions writes the input of iptables-restore: the rules that jump to owned chains go
// first, then the rules in them, then the chains.
func (s *Ruleset) deletions(objects []Object) string {
	lines := map[string][3][]string{} // by table
	add := func(table string, phase int, line string) {
		all := lines[table]
		all[phase] = append(all[phase], line)
		lines[table] = all
	}
	for _, object := range objects {
		switch object := object.(type) {
		case Rule:
			if slices.Contains(s.Jumps, object) {
				add(object.Table, 0, "-D "+object.Chain+" "+object.Spec)
			}
		case Chain:
			if hasKey(s.Chains, object) {
				add(object.Table, 1, "-F "+object.Name)
				add(object.Table, 2, "-X "+object.Name)
			}
		}
	}
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString("*" + table + "\n")
		for _, phase := range lines[table] {
			for _, line := range phase {
				b.WriteString(line + "\n")
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}
