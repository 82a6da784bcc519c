// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/cleanup/internal/iptables"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/netfilter"
)

func findLegacy(ctx context.Context, s *search) error {
	if !s.own.hasNetfilter(kindChain, slices.Concat(s.own.ChainPrefixes, s.own.RuleComments)) {
		return nil
	}
	var errs failure.Set
	for _, f := range netfilter.Families() {
		set, err := iptables.List(ctx, f, s.own.iptables())
		errs.Add(err)
		for _, rule := range set.Rules {
			s.found(Item{
				Kind:   kindLegacy,
				Object: fmt.Sprintf("%s %s rule %s %s", f.Name, rule.Table, rule.Chain, because(rule.Comment, rule.JumpsTo())),
				Detail: rule.Spec,
				object: rule,
			}, nameOf(kindLegacy, fmt.Sprintf("%s %s chain %s", f.Name, rule.Table, rule.JumpsTo())))
		}
		for _, chain := range set.SortedChains() {
			var with []string
			for _, other := range set.Chains[chain] {
				with = append(with, nameOf(kindLegacy, fmt.Sprintf("%s %s chain %s", f.Name, chain.Table, other)))
			}
			s.found(Item{
				Kind:   kindLegacy,
				Object: fmt.Sprintf("%s %s chain %s", f.Name, chain.Table, chain.Name),
				Detail: count(len(set.Chains[chain]), "rule", "rules"),
				object: chain,
			}, with...)
		}
	}
	return errs.Join()
}

// removeLegacy deletes chains and rules with one run of a tool for each family.
func removeLegacy(ctx context.Context, r *removal, objects []iptables.Object, done func(i int, err error)) {
	iptables.Delete(ctx, r.own.iptables(), objects, done)
}
