// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

func findNFT(ctx context.Context, s *search) error {
	if !s.own.hasNetfilter(kindChain, slices.Concat(s.own.ChainPrefixes, s.own.RuleComments)) {
		return nil
	}
	set, err := netfilter.List(ctx, s.own.iptables())
	for _, rule := range set.Rules {
		item := Item{Kind: kindNFT, Detail: fmt.Sprintf("handle %d", rule.Handle), object: rule}
		s.foundRule(item, rule.Table.String(), rule.Chain, rule.Comment, rule.JumpsTo)
	}
	for _, chain := range set.SortedChains() {
		var jumps []string
		for _, rule := range set.Chains[chain] {
			jumps = append(jumps, rule.JumpsTo)
		}
		s.foundChain(Item{Kind: kindNFT, object: chain}, chain.Table.String(), chain.Name, jumps)
	}
	return err
}

// foundRule lists a rule in a chain of others, which goes with the chain that it jumps to.
func (s *search) foundRule(item Item, table, chain, comment, jumpsTo string) {
	because := "-> " + jumpsTo
	if comment != "" {
		because = strconv.Quote(comment)
	}
	item.Object = table + " rule " + chain + " " + because
	s.found(item, nameOf(item.Kind, table+" chain "+jumpsTo))
}

// foundChain lists a chain with the chains that each of its rules jumps to, or "".
func (s *search) foundChain(item Item, table, name string, jumps []string) {
	item.Object, item.Detail = table+" chain "+name, count(len(jumps), "rule", "rules")
	var with []string
	for _, other := range jumps {
		with = append(with, nameOf(item.Kind, table+" chain "+other))
	}
	s.found(item, with...)
}

func (o *owned) iptables() netfilter.Owned {
	owned := netfilter.Owned{Chain: o.ownsChain}
	if len(o.RuleComments) > 0 {
		owned.Comment = o.ownsComment
	}
	return owned
}

// removeNFT deletes chains and rules in one transaction.
func removeNFT(ctx context.Context, r *removal, objects []netfilter.Object, done func(i int, err error)) {
	netfilter.Delete(ctx, r.own.iptables(), objects, done)
}
