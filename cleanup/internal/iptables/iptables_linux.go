// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/netfilter"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Object is a [Chain] or a [Rule].
type Object interface {
	family() string
	after() int // objects with higher values are deleted first, if not all are deleted at once
}

// Chain identifies a chain.
type Chain struct{ Family, Table, Name string }

func (c Chain) family() string { return c.Family }

func (Chain) after() int { return -1 }

// Rule identifies a rule in a foreign chain by its text. Equal rules are distinguished by
// their number.
type Rule struct {
	Family, Table, Chain string
	Spec                 string // all but the chain, as iptables-save writes it
	Comment              string // if that makes it owned
	nth                  int
}

// JumpsTo returns the target of a rule's jump in its last two words. A rule that jumps to
// a chain ends with the chain's name, and quoted text ends with a quote, which no name
// contains.
func (r Rule) JumpsTo() string {
	words := strings.Fields(r.Spec)
	if n := len(words); n >= 2 && (words[n-2] == "-j" || words[n-2] == "-g") {
		return words[n-1]
	}
	return ""
}

func (r Rule) family() string { return r.Family }

func (r Rule) after() int { return r.nth }

// toolPair is the pair of tools that reads and changes legacy tables.
type toolPair struct {
	name          string // of the tool for single rules
	save, restore hosttool.Tool
}

// tools finds the host's tools of a variant, "legacy" or "nft", which sees only its own
// tables. The plain names belong to nft on most hosts.
func tools(ctx context.Context, f netfilter.Family, variant string) (toolPair, error) {
	named, err := pair(f.Tool + "-" + variant)
	if err == nil {
		return named, nil
	}
	t, multiErr := hosttool.Find("xtables-" + variant + "-multi")
	if multiErr == nil {
		return toolPair{"xtables-" + variant + "-multi " + f.Tool, append(t[:1:1], f.Tool+"-save"), append(t[:1:1], f.Tool+"-restore")}, nil
	}
	plain, plainErr := pair(f.Tool)
	main, mainErr := hosttool.Find(f.Tool)
	if plainErr == nil && mainErr == nil {
		var version string
		err := main.Run(ctx, "", func(line string) { version += line }, "--version")
		if err == nil && strings.Contains(version, "nf_tables") == (variant == "nft") {
			return plain, nil
		}
	}
	return toolPair{}, untrusted(err, multiErr, plainErr, mainErr)
}

func pair(name string) (t toolPair, err error) {
	var other error
	t.name = name
	t.save, err = hosttool.Find(name + "-save")
	t.restore, other = hosttool.Find(name + "-restore")
	return t, errors.Join(err, other)
}

// untrusted is a tool that exists but is not executed; nil if there is none.
func untrusted(errs ...error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return !errors.Is(err, hosttool.ErrUntrusted) })...)
}

// List looks at the tables of one family.
func List(ctx context.Context, f netfilter.Family, owned netfilter.Owned) (*Ruleset, error) {
	set := newRuleset(owned, f.Name)
	tables, err := f.LegacyTables(ctx)
	if err != nil || len(tables) == 0 {
		return set, err
	}
	t, err := tools(ctx, f, "legacy")
	if err != nil {
		return set, err
	}
	if t.save == nil {
		return set, fmt.Errorf("the host has no %[1]s-legacy-save and no %[1]s-legacy-restore to read and clean its %[2]s tables (%[3]s): install its package iptables, or run this where they are installed",
			f.Tool, f.Name, strings.Join(tables, ", "))
	}
	if err := t.save.Run(ctx, "", set.line); err != nil {
		return set, capabilityHint(err)
	}
	return set, set.end()
}

// IPSetUsers describes the rules that use an ipset, of whatever owner, with the commands
// that delete them, as far as the host has the tools to list them.
func IPSetUsers(ctx context.Context, name string) (users []string, err error) {
	for _, f := range netfilter.Families() {
		for _, variant := range []string{"nft", "legacy"} {
			t, e := tools(ctx, f, variant)
			if err = errors.Join(err, e); t.save == nil {
				continue
			}
			set := newRuleset(netfilter.Owned{
				Chain:   func(string) bool { return false },
				Comment: func(used string) bool { return used == name },
			}, f.Name)
			set.options = []string{"--match-set", "--add-set", "--del-set", "--map-set"}
			err = errors.Join(err, t.save.Run(ctx, "", set.line))
			for _, r := range set.Rules {
				users = append(users, r.describe(t.name))
			}
		}
	}
	return users, err
}

// inShell escapes what a shell would expand within the double quotes of iptables-save.
var inShell = strings.NewReplacer("$", `\$`, "`", "\\`")

// describe has the rule, and the command that deletes it.
func (r Rule) describe(tool string) string {
	return fmt.Sprintf("the rule %q of chain %s in table %s, to delete with: %s -t %[3]s -D %[2]s %[5]s", r.Spec, r.Chain, r.Table, tool, inShell.Replace(r.Spec))
}

// Delete deletes the objects of each family with one run of iptables-restore,
// which changes each table in one transaction and leaves all other rules in it
// as they are, their counters included. Where it refuses, the objects are tried
// one by one, as long as some go: a chain may be in use by another one that goes after it. It
// calls done for each object that it came to before ctx was done, by its index.
func Delete(ctx context.Context, owned netfilter.Owned, objects []Object, done func(i int, err error)) {
	for _, f := range netfilter.Families() {
		var mine []int
		for i, object := range objects {
			if object.family() == f.Name {
				mine = append(mine, i)
			}
		}
		if len(mine) == 0 || ctx.Err() != nil {
			continue
		}
		// Of equal rules the kernel takes the first, so the last one goes first.
		sort.SliceStable(mine, func(a, b int) bool { return objects[mine[b]].after() < objects[mine[a]].after() })
		var all []Object
		for _, i := range mine {
			all = append(all, objects[i])
		}
		err := deleteAll(ctx, f, owned, all)
		if err != nil && !isLocked(err) && ctx.Err() == nil {
			remove := func(i int) error { return deleteAll(ctx, f, owned, all[i:i+1]) }
			netfilter.WhileSomeGo(ctx, len(all), remove, func(i int, err error) { done(mine[i], err) })
			continue
		}
		for _, i := range mine {
			done(i, err)
		}
	}
}

// isLocked reports whether iptables could not get its lock or the kernel's
// memory (iptables(8): RESOURCE_PROBLEM).
func isLocked(err error) bool {
	return hosttool.ExitCode(err) == 4
}

// deleteAll deletes those objects that are still there.
func deleteAll(ctx context.Context, f netfilter.Family, owned netfilter.Owned, objects []Object) error {
	set, err := List(ctx, f, owned)
	if err != nil {
		return err
	}
	input := set.deletions(objects)
	if input == "" {
		return nil
	}
	const seconds = "5" // to wait for the lock that all of iptables share
	t, err := tools(ctx, f, "legacy")
	if err != nil {
		return err
	}
	err = capabilityHint(t.restore.Run(ctx, input, nil, "-w", seconds, "--noflush"))
	for _, r := range set.broken {
		if slices.Equal(objects, []Object{Chain{r.Family, r.Table, r.JumpsTo()}}) {
			err = netfilter.UsedBy(err, r.describe(t.name))
		}
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (it waits for /run/xtables.lock, the lock of all of iptables, as long as another program holds that)", err)
	}
	return err
}

// capabilityHint names the capabilities that the tool needs and does not get; its
// own message does not.
func capabilityHint(err error) error {
	if missing := remedy.Missing(remedy.NetAdmin, remedy.NetRaw); err != nil && len(missing) > 0 {
		return remedy.Add(err, "needs "+remedy.Names(missing...))
	}
	return err
}
