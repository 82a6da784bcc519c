// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables

import (
	"cmp"
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
	Chains map[Chain][]string // with the chain that each rule in them jumps to, or ""
	Rules  []Rule             // owned rules in other chains

	owned   netfilter.Owned
	options []string // whose values are taken for comments
	broken  []Rule   // rules with line breaks that jump to owned chains
	family  string
	table   string // that the line is about; "" between tables
	begun   string // the start of a rule whose last line so far ended within quotes
	seen    map[Rule]int
}

func newRuleset(owned netfilter.Owned, family string) *Ruleset {
	return &Ruleset{owned: owned, options: []string{"--comment"}, family: family, Chains: map[Chain][]string{}, seen: map[Rule]int{}}
}

// line reads a line: "*table", ":chain policy [counters]", "-A chain rule",
// "COMMIT" or "# comment". In a table, the chains come before the rules.
func (s *Ruleset) line(line string) {
	switch {
	case s.begun != "":
		s.command(s.begun + "\n" + line)
	case strings.HasPrefix(line, "*"):
		s.table = line[1:]
	case line == "COMMIT":
		s.table = ""
	case !slices.Contains(netfilter.Tables(), s.table):
	case strings.HasPrefix(line, ":"):
		name, policy, _ := strings.Cut(line[1:], " ")
		if strings.HasPrefix(policy, "- ") && s.owned.Chain(name) {
			s.Chains[Chain{s.family, s.table, name}] = nil
		}
	case strings.HasPrefix(line, "-A "):
		s.command(line)
	}
}

// command reads what may be the start of a rule only.
func (s *Ruleset) command(text string) {
	if _, open := words(text); open {
		s.begun = text
		return
	}
	s.begun = ""
	chain, spec, _ := strings.Cut(text[len("-A "):], " ")
	s.rule(Rule{Family: s.family, Table: s.table, Chain: chain, Spec: spec})
}

// rule notes a rule that is in an owned chain, or owned in another. iptables-restore cannot
// read one with a line break either, so that keeps the chain that it jumps to.
func (s *Ruleset) rule(r Rule) {
	if inside := (Chain{s.family, s.table, r.Chain}); hasKey(s.Chains, inside) {
		s.Chains[inside] = append(s.Chains[inside], r.JumpsTo())
		return
	}
	jumps := hasKey(s.Chains, Chain{s.family, s.table, r.JumpsTo()})
	if !jumps && s.owned.Comment != nil {
		r.Comment = s.owned.CommentOf(r.values(s.options))
	}
	switch {
	case !jumps && r.Comment == "":
	case strings.Contains(r.Spec, "\n"):
		s.broken = append(s.broken, r)
	default:
		nth := s.seen[r]
		s.seen[r]++
		r.nth = nth
		s.Rules = append(s.Rules, r)
	}
}

// end brings the rules into the order of iptables' tables.
func (s *Ruleset) end() error {
	if s.begun != "" {
		return errors.New("iptables-save ends within quotes")
	}
	tables := netfilter.Tables()
	sort.SliceStable(s.Rules, func(i, j int) bool {
		return slices.Index(tables, s.Rules[i].Table) < slices.Index(tables, s.Rules[j].Table)
	})
	return nil
}

// words splits a text at its blanks. Within double quotes, which iptables-save writes around
// unusual characters, a backslash takes the next character's meaning; open reports whether
// the text ends within them.
func words(text string) (list []string, open bool) {
	var word []byte
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			open = !open
			continue
		case text[i] == ' ' && !open:
			list, word = append(list, string(word)), nil
			continue
		case text[i] == '\\' && open && i+1 < len(text):
			i++
		}
		word = append(word, text[i])
	}
	return append(list, string(word)), open
}

// values returns those of the rule's options.
func (r Rule) values(options []string) (values []string) {
	list, _ := words(r.Spec)
	for i, word := range list[1:] {
		if slices.Contains(options, list[i]) {
			values = append(values, word)
		}
	}
	return values
}

func hasKey[K comparable, V any](m map[K]V, key K) bool { _, ok := m[key]; return ok }

// SortedChains returns the chains in the order of their tables and names.
func (s *Ruleset) SortedChains() []Chain {
	return slices.SortedFunc(maps.Keys(s.Chains), func(a, b Chain) int { return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name)) })
}

// deletions writes the input of iptables-restore: the rules in other owners' chains go
// first, then the rules in owned chains, then the chains.
func (s *Ruleset) deletions(objects []Object) string {
	lines := map[string][3][]string{} // by table
	add := func(table string, phase int, line string) {
		all := lines[table]
		all[phase] = append(all[phase], line)
		lines[table] = all
	}
	rules := make(map[Rule]bool, len(s.Rules))
	for _, rule := range s.Rules {
		rules[rule] = true
	}
	for _, object := range objects {
		switch object := object.(type) {
		case Rule:
			if rules[object] {
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
