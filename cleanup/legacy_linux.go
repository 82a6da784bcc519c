// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
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

// legacyFamily is IPv4's or IPv6's side of legacy iptables.
type legacyFamily struct {
	name   string // "ip", "ip6"
	tool   string // the name that its tools start with
	tables string // the file that lists its tables
}

func legacyFamilies() []legacyFamily {
	return []legacyFamily{
		{"ip", "iptables", "/proc/thread-self/net/ip_tables_names"},
		{"ip6", "ip6tables", "/proc/thread-self/net/ip6_tables_names"},
	}
}

// existing returns the names of the tables that exist in the thread's network
// namespace. The kernel makes a table at the first question about it, so only
// where there is one may a tool be asked.
func (f legacyFamily) existing() ([]string, error) {
	text, err := os.ReadFile(f.tables)
	if errors.Is(err, unix.ENOENT) {
		// The kernel has none, or has no IPv6; or this is a /proc that does not
		// show the thread, and says nothing about it.
		_, err = os.Stat(filepath.Dir(f.tables))
	}
	return strings.Fields(string(text)), err
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
		var version string
		err := main.run(ctx, "", func(line string) { version += line }, "--version")
		if err == nil && !strings.Contains(version, "nf_tables") {
			return plain
		}
	}
	return legacyTool{}
}

// legacy looks at the tables of one family.
func (s *session) legacy(ctx context.Context, f legacyFamily) (*legacyState, error) {
	state := newLegacyState(s.own, f.name)
	tables, err := f.existing()
	if err != nil || len(tables) == 0 {
		return state, err
	}
	t := f.legacyTool(ctx)
	if t.save == nil {
		return state, fmt.Errorf("the host has no %[1]s-legacy-save and no %[1]s-legacy-restore to look into its %[2]s tables (%[3]s) and to remove what is in them with: install its package iptables, or run this where they are",
			f.tool, f.name, strings.Join(tables, ", "))
	}
	if err := t.save.run(ctx, "", state.line); err != nil {
		return state, legacyHint(err)
	}
	return state, state.end()
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
	return legacyHint(f.legacyTool(ctx).restore.run(ctx, input, nil, "-w", seconds, "--noflush"))
}

// legacyHint names the capabilities that a tool would need and not get, which
// it does not tell of.
func legacyHint(err error) error {
	if err == nil {
		return nil
	}
	var missing []remedy.Capability
	for _, c := range []remedy.Capability{remedy.NetAdmin, remedy.NetRaw} {
		if may, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err == nil && may == 0 {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return err
	}
	return remedy.Add(err, "needs "+remedy.Names(missing...))
}
