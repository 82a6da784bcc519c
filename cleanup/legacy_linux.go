// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// legacyChainRef identifies a chain of a legacy table.
type legacyChainRef struct{ family, table, name string }

// legacyRuleRef identifies a rule in a chain of somebody else's, that jumps to
// one that is owned, by its text. Equal rules are told apart by nth.
type legacyRuleRef struct {
	family, table, chain string
	spec                 string // all but the chain, as iptables-save writes it
	nth                  int
}

// legacyState is what one family's legacy tables hold that is owned.
type legacyState struct {
	chains map[legacyChainRef]int // how many rules are in them
	jumps  []legacyRuleRef
}

// legacyTool is the pair of tools that reads and changes legacy tables.
type legacyTool struct{ save, restore tool }

// legacyTool finds the host's tools. The plain names belong to iptables-nft on
// most hosts, which sees nothing of the legacy tables.
func (f legacyFamily) legacyTool(ctx context.Context) legacyTool {
	if t := (legacyTool{findTool(f.tool + "-legacy-save"), findTool(f.tool + "-legacy-restore")}); t.save != nil && t.restore != nil {
		return t
	}
	if t := findTool("xtables-legacy-multi"); t != nil {
		return legacyTool{append(t[:1:1], f.tool+"-save"), append(t[:1:1], f.tool+"-restore")}
	}
	plain := legacyTool{findTool(f.tool + "-save"), findTool(f.tool + "-restore")}
	if main := findTool(f.tool); main != nil && plain.save != nil && plain.restore != nil {
		version, err := main.run(ctx, "", "--version")
		if err == nil && !strings.Contains(version, "nf_tables") {
			return plain
		}
	}
	return legacyTool{}
}

// legacy looks at the tables of one family.
func (s *session) legacy(ctx context.Context, f legacyFamily) (*legacyState, error) {
	state := &legacyState{chains: map[legacyChainRef]int{}}
	chains, err := s.legacyChains(f)
	if err != nil || len(chains) == 0 {
		return state, err
	}
	t := f.legacyTool(ctx)
	if t.save == nil {
		return state, fmt.Errorf("the host has no %[1]s-legacy-save and no %[1]s-legacy-restore to remove chain %[2]s and %[3]d more with: install its package iptables, or run this where they are",
			f.tool, legacyNames(chains)[0], len(chains)-1)
	}
	for _, table := range iptablesTables() {
		if !slices.ContainsFunc(chains, func(c legacyChainRef) bool { return c.table == table }) {
			continue
		}
		text, err := t.save.run(ctx, "", "-t", table)
		if err != nil {
			return state, legacyHint(err)
		}
		s.own.parseSave(state, f.name, table, text)
	}
	return state, nil
}

func legacyNames(chains []legacyChainRef) []string {
	var names []string
	for _, chain := range chains {
		names = append(names, chain.name)
	}
	slices.Sort(names)
	return names
}

// legacyChains returns the owned chains as the kernel tells of them.
func (s *session) legacyChains(f legacyFamily) (out []legacyChainRef, err error) {
	tables, err := f.tables()
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		names, err := f.chains(table)
		if err != nil {
			return nil, fmt.Errorf("look at table %s %s: %w", f.name, table, err)
		}
		for _, name := range names {
			if hasPrefix(name, s.own.ChainPrefixes) {
				out = append(out, legacyChainRef{f.name, table, name})
			}
		}
	}
	return out, nil
}

// parseSave reads what iptables-save writes of one table. A rule that jumps to
// a chain has nothing behind the chain's name; quotes and blanks are in no name.
func (o *owned) parseSave(state *legacyState, family, table, text string) {
	for line := range strings.Lines(text) {
		chain, isChain := strings.CutPrefix(line, ":")
		name, counters, _ := strings.Cut(chain, " ")
		if isChain && strings.HasPrefix(counters, "- ") && hasPrefix(name, o.ChainPrefixes) {
			state.chains[legacyChainRef{family, table, name}] = 0
		}
	}
	seen := map[legacyRuleRef]int{}
	for line := range strings.Lines(text) {
		rule, isRule := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-A ")
		chain, spec, _ := strings.Cut(rule, " ")
		if !isRule {
			continue
		}
		if inside := (legacyChainRef{family, table, chain}); hasKey(state.chains, inside) {
			state.chains[inside]++
		} else if hasKey(state.chains, legacyChainRef{family, table, jumpTarget(spec)}) {
			ref := legacyRuleRef{family: family, table: table, chain: chain, spec: spec}
			ref.nth = seen[ref]
			seen[legacyRuleRef{family: family, table: table, chain: chain, spec: spec}]++
			state.jumps = append(state.jumps, ref)
		}
	}
}

func hasKey[K comparable, V any](m map[K]V, key K) bool { _, ok := m[key]; return ok }

// jumpTarget returns what the last two words of a rule jump to.
func jumpTarget(spec string) string {
	words := strings.Fields(spec)
	if n := len(words); n >= 2 && (words[n-2] == "-j" || words[n-2] == "-g") {
		return words[n-1]
	}
	return ""
}

func findLegacy(ctx context.Context, s *session) error {
	if len(s.own.ChainPrefixes) == 0 {
		return nil
	}
	var errs errorSet
	for _, f := range legacyFamilies() {
		state, err := s.legacy(ctx, f)
		errs.add(err)
		for _, rule := range state.jumps {
			s.found(Item{
				Kind:   kindLegacy,
				Object: fmt.Sprintf("%s %s rule %s -> %s", f.name, rule.table, rule.chain, jumpTarget(rule.spec)),
				Detail: rule.spec,
				ref:    rule,
			})
		}
		for _, chain := range state.sortedChains() {
			s.found(Item{
				Kind:   kindLegacy,
				Object: fmt.Sprintf("%s %s chain %s", f.name, chain.table, chain.name),
				Detail: count(state.chains[chain], "rule", "rules"),
				ref:    chain,
			})
		}
	}
	return errs.join()
}

func (s *legacyState) sortedChains() []legacyChainRef {
	return slices.SortedFunc(maps.Keys(s.chains), func(a, b legacyChainRef) int {
		return strings.Compare(a.table+" "+a.name, b.table+" "+b.name)
	})
}

// removeLegacy removes the items of one family with one run of
// iptables-restore, which changes each table in one transaction and leaves all
// other rules in it as they are, their counters included. Where it refuses, the
// items are tried one by one.
func removeLegacy(ctx context.Context, s *session, items []Item, done doneFunc) {
	for _, f := range legacyFamilies() {
		var mine []Item
		for _, item := range items {
			if f.has(item) {
				mine = append(mine, item)
			}
		}
		if len(mine) == 0 || ctx.Err() != nil {
			continue
		}
		err := s.removeLegacyItems(ctx, f, mine)
		if err != nil && !isLocked(err) {
			s.removeLegacySingly(ctx, f, mine, done)
			continue
		}
		for _, item := range mine {
			done(item, err)
		}
	}
}

// isLocked reports whether iptables could not get its lock or the kernel's
// memory (iptables(8): RESOURCE_PROBLEM).
func isLocked(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 4
}

func (f legacyFamily) has(item Item) bool {
	switch ref := item.ref.(type) {
	case legacyRuleRef:
		return ref.family == f.name
	case legacyChainRef:
		return ref.family == f.name
	}
	return false
}

// removeLegacySingly goes on for as long as something goes: a chain may be in
// use by another one that goes after it. Of equal rules the kernel takes the
// first, so the last one's item goes first.
func (s *session) removeLegacySingly(ctx context.Context, f legacyFamily, items []Item, done doneFunc) {
	items = slices.SortedStableFunc(slices.Values(items), func(a, b Item) int { return nthRule(b) - nthRule(a) })
	for {
		var left []Item
		failed := map[any]error{}
		for _, item := range items {
			if ctx.Err() != nil {
				return
			}
			if err := s.removeLegacyItems(ctx, f, []Item{item}); err != nil {
				left = append(left, item)
				failed[item.ref] = err
				continue
			}
			done(item, nil)
		}
		if len(left) < len(items) && len(left) > 0 {
			items = left
			continue
		}
		for _, item := range left {
			done(item, failed[item.ref])
		}
		return
	}
}

// nthRule returns -1 for a chain.
func nthRule(item Item) int {
	if rule, ok := item.ref.(legacyRuleRef); ok {
		return rule.nth
	}
	return -1
}

// removeLegacyItems removes those items that are still there.
func (s *session) removeLegacyItems(ctx context.Context, f legacyFamily, items []Item) error {
	state, err := s.legacy(ctx, f)
	if err != nil {
		return err
	}
	input := state.deletions(items)
	if input == "" {
		return nil
	}
	const seconds = "5" // to wait for the lock that all of iptables share
	_, err = f.legacyTool(ctx).restore.run(ctx, input, "-w", seconds, "--noflush")
	return legacyHint(err)
}

// legacyHint names the capability that the tools need for a raw socket, and do
// not tell of.
func legacyHint(err error) error {
	if err == nil {
		return nil
	}
	may, capErr := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_NET_RAW, 0, 0, 0)
	if capErr == nil && may == 0 {
		return hinted{err, "needs CAP_NET_RAW"}
	}
	return err
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
