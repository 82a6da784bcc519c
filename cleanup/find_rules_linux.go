// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// ruleObject is a rule of policy routing, by the request that deletes it.
type ruleObject struct{ request rtnl.RuleRequest }

// findRules lists owned rules, and foreign ones that lead to shared tables.
func findRules(ctx context.Context, s *search) error {
	if len(s.own.Rules)+len(s.own.SharedTables) == 0 && s.own.LocalRule == 0 {
		return nil
	}
	return eachRule(ctx, &s.kernel, func(r rtnl.Rule) {
		item := Item{Kind: kindRule, Object: describeRule(r), object: ruleObject{r.Request}}
		switch {
		case s.own.movedLocal(asRule(r)):
			item.object = localRuleObject{ruleObject{r.Request}}
			item.Detail = "it is put back, to priority 0"
			s.found(item)
		case s.own.ownsRule(asRule(r)):
			s.found(item)
		case r.ToTable && slices.Contains(s.own.SharedTables, r.Table):
			s.leave(item, fmt.Sprintf("foreign, to table %d that others use, too", r.Table))
		}
	})
}

// eachRule calls f with the rules of IPv4, then those of IPv6, as moreSpecialFirst has them.
func eachRule(ctx context.Context, kernel *rtnl.Conn, f func(rtnl.Rule)) error {
	var errs failure.Set
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := kernel.Rules(ctx, family)
		errs.Add(err)
		sort.SliceStable(list, func(i, j int) bool { return moreSpecialFirst(list[i], list[j]) })
		for _, r := range list {
			f(r)
		}
	}
	return errs.Join()
}

// findMarkedRules lists foreign rules that send packets with a mark of the agent to another
// table than it does. Those to shared tables are findRules's.
func findMarkedRules(ctx context.Context, s *search) error {
	return eachRule(ctx, &s.kernel, func(r rtnl.Rule) {
		if mark, diverts := s.own.diverted(asRule(r)); diverts && !slices.Contains(s.own.SharedTables, r.Table) {
			s.leave(Item{Kind: kindRule, Object: describeRule(r)}, fmt.Sprintf("foreign, at the agent's mark %s", mark.text()))
		}
	})
}

func ciliumENITables(ctx context.Context) (tables []uint32, err error) {
	var kernel rtnl.Conn
	defer kernel.Close()
	err = eachRule(ctx, &kernel, func(r rtnl.Rule) {
		if own, e := CiliumENI(r.Table).compile(); e == nil && own.ownsRule(asRule(r)) {
			tables = append(tables, r.Table)
		}
	})
	slices.Sort(tables)
	return slices.Compact(tables), err
}

// moreSpecialFirst compares rules by priority, and those of one by how much they select by:
// the kernel could take a more special one for a plainer one, which goes when that has gone.
func moreSpecialFirst(a, b rtnl.Rule) bool {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(len(b.Request), len(a.Request))) < 0
}

// asRule describes a rule as ip-rule(8) does. Table 0 means none.
func asRule(r rtnl.Rule) rule {
	out := rule{Priority: r.Priority, Mark: Mark(r.Mark), Not: r.Not, From: r.From, To: r.To, More: !r.Plain, Protocol: r.Protocol}
	if r.ToTable {
		out.Table = r.Table
	}
	return out
}

func describeRule(r rtnl.Rule) string {
	family := "IPv4"
	if r.Family == unix.AF_INET6 {
		family = "IPv6"
	}
	out := fmt.Sprintf("%s %d:", family, r.Priority)
	if r.Not {
		out += " not"
	}
	if r.From.Bits() > 0 {
		out += " from " + r.From.String()
	}
	if r.To.Bits() > 0 {
		out += " to " + r.To.String()
	}
	if r.Mark.Mask != 0 {
		out += " fwmark " + Mark(r.Mark).text()
	}
	return out + fmt.Sprintf(" lookup %d", r.Table)
}

// rulesBefore returns the rules as they were before the first one was removed, without those
// removed since: a look for each of thousands would read all the others each time. One that
// another program adds meanwhile is behind the listed one, which the kernel finds first.
func (r *removal) rulesBefore(ctx context.Context) (*rtnl.Rules, error) {
	return r.rules.get(func() (*rtnl.Rules, error) {
		rules := rtnl.NewRules()
		return rules, eachRule(ctx, &r.kernel, rules.Add)
	})
}

// remove deletes the rule if it is the only one that the request can mean.
func (o ruleObject) remove(ctx context.Context, r *removal) error {
	rules, err := r.rulesBefore(ctx)
	exists, ambiguous := rules.Find(o.request)
	switch {
	case err != nil || !exists:
		return err
	case ambiguous:
		return errors.New("a more specific rule has the same priority and table, and the kernel could delete it instead of this one; left as it is")
	}
	if err = r.kernel.DeleteRule(o.request); err == nil {
		rules.Deleted(o.request)
	}
	return err
}

// localRuleObject is the rule that looks up the table local, where an agent has
// moved it.
type localRuleObject struct{ ruleObject }

// remove puts the rule back. At no time is there none: without it, the node's own
// addresses are not reached.
func (o localRuleObject) remove(ctx context.Context, r *removal) error {
	rules, err := r.rulesBefore(ctx)
	if exists, _ := rules.Find(o.request); err != nil || !exists { // another program has deleted or changed it
		return err
	}
	if err := r.kernel.AddRule(o.request.WithPriority(0)); err != nil {
		return fmt.Errorf("put it back to priority 0: %w", err)
	}
	return o.ruleObject.remove(ctx, r)
}
