// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// legacyState is what one family's legacy tables hold that is owned, read line
// by line from what iptables-save writes.
type legacyState struct {
	chains map[legacyChainRef]int // how many rules are in them
	jumps  []legacyRuleRef

	own    *owned
	family string
	table  string // that the line is about; "" between tables
	quoted bool   // the line before ended within quotes
	seen   map[legacyRuleRef]int
}

func newLegacyState(own *owned, family string) *legacyState {
	return &legacyState{own: own, family: family, chains: map[legacyChainRef]int{}, seen: map[legacyRuleRef]int{}}
}

// line reads a line: "*table", ":chain policy [counters]", "-A chain rule",
// "COMMIT" or "# comment". In a table, the chains come before the rules.
func (s *legacyState) line(line string) {
	switch {
	case s.quoted: // the rest of a rule
		s.quoted = endsQuoted(line, true)
	case strings.HasPrefix(line, "*"):
		s.table = line[1:]
	case line == "COMMIT":
		s.table = ""
	case !slices.Contains(iptablesTables(), s.table):
	case strings.HasPrefix(line, ":"):
		name, policy, _ := strings.Cut(line[1:], " ")
		if strings.HasPrefix(policy, "- ") && hasPrefix(name, s.own.ChainPrefixes) {
			s.chains[legacyChainRef{s.family, s.table, name}] = 0
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
func (s *legacyState) rule(chain, spec string) {
	if inside := (legacyChainRef{s.family, s.table, chain}); hasKey(s.chains, inside) {
		s.chains[inside]++
		return
	}
	if s.quoted || !hasKey(s.chains, legacyChainRef{s.family, s.table, jumpTarget(spec)}) {
		return
	}
	ref := legacyRuleRef{family: s.family, table: s.table, chain: chain, spec: spec}
	nth := s.seen[ref]
	s.seen[ref]++
	ref.nth = nth
	s.jumps = append(s.jumps, ref)
}

// end brings the jumps into the order of iptables' tables.
func (s *legacyState) end() error {
	if s.quoted {
		return errors.New("iptables-save ends within quotes")
	}
	tables := iptablesTables()
	slices.SortStableFunc(s.jumps, func(a, b legacyRuleRef) int {
		return slices.Index(tables, a.table) - slices.Index(tables, b.table)
	})
	return nil
}

// endsQuoted reports whether a line ends within double quotes, in which a
// backslash takes the next character's meaning. open: it begins there.
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

// jumpTarget returns what the last two words of a rule jump to. A rule that
// jumps to a chain has nothing behind the chain's name, and what is quoted ends
// with a quote, which is in no name.
func jumpTarget(spec string) string {
	words := strings.Fields(spec)
	if n := len(words); n >= 2 && (words[n-2] == "-j" || words[n-2] == "-g") {
		return words[n-1]
	}
	return ""
}

func (s *legacyState) sortedChains() []legacyChainRef {
	return slices.SortedFunc(maps.Keys(s.chains), func(a, b legacyChainRef) int {
		return strings.Compare(a.table+" "+a.name, b.table+" "+b.name)
	})
}

// deletions writes what iptables-restore reads: the rules that jump to owned
// chains go first, then the rules in them, then the chains.
func (s *legacyState) deletions(items []Item) string {
	lines := map[string][3][]string{} // by table
	add := func(table string, phase int, line string) {
		all := lines[table]
		all[phase] = append(all[phase], line)
		lines[table] = all
	}
	for _, item := range items {
		switch ref := item.ref.(type) {
		case legacyRuleRef:
			if slices.Contains(s.jumps, ref) {
				add(ref.table, 0, "-D "+ref.chain+" "+ref.spec)
			}
		case legacyChainRef:
			if hasKey(s.chains, ref) {
				add(ref.table, 1, "-F "+ref.name)
				add(ref.table, 2, "-X "+ref.name)
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
