// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
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
			item := Item{Kind: kindLegacy, Detail: rule.Spec, object: rule}
			s.foundRule(item, f.Name+" "+rule.Table, rule.Chain, rule.Comment, rule.JumpsTo())
		}
		for _, chain := range set.SortedChains() {
			s.foundChain(Item{Kind: kindLegacy, object: chain}, f.Name+" "+chain.Table, chain.Name, set.Chains[chain])
		}
	}
	return errs.Join()
}

// removeLegacy deletes chains and rules with one run of a tool for each family.
func removeLegacy(ctx context.Context, r *removal, objects []iptables.Object, done func(i int, err error)) {
	iptables.Delete(ctx, r.own.iptables(), objects, done)
}
