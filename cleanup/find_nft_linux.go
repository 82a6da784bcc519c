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
	sock, err := s.sockets.netfilter()
	if err != nil {
		return err
	}
	set, err := sock.Ruleset(ctx, s.own.iptables())
	for _, rule := range set.Rules {
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s rule %s %s", rule.Table, rule.Chain, because(rule.Comment, rule.JumpsTo)),
			Detail: fmt.Sprintf("handle %d", rule.Handle),
			object: rule,
		}, nameOf(kindNFT, fmt.Sprintf("%s chain %s", rule.Table, rule.JumpsTo)))
	}
	for _, chain := range set.SortedChains() {
		var with []string
		for _, rule := range set.Chains[chain] {
			with = append(with, nameOf(kindNFT, fmt.Sprintf("%s chain %s", chain.Table, rule.JumpsTo)))
		}
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s chain %s", chain.Table, chain.Name),
			Detail: count(len(set.Chains[chain]), "rule", "rules"),
			object: chain,
		}, with...)
	}
	return err
}

func (o *owned) iptables() netfilter.Owned {
	owned := netfilter.Owned{Chain: o.ownsChain}
	if len(o.RuleComments) > 0 {
		owned.Comment = o.ownsComment
	}
	return owned
}

// because is what makes a rule owned: its comment, or the chain that it jumps to.
func because(comment, jumpsTo string) string {
	if comment != "" {
		return strconv.Quote(comment)
	}
	return "-> " + jumpsTo
}

// removeNFT deletes chains and rules in one transaction.
func removeNFT(ctx context.Context, r *removal, objects []netfilter.Object, done func(i int, err error)) {
	sock, err := r.sockets.netfilter()
	if err != nil {
		failAll(len(objects), err, done)
		return
	}
	sock.Delete(ctx, r.own.iptables(), objects, done)
}

func failAll(n int, err error, done func(i int, err error)) {
	for i := range n {
		done(i, err)
	}
}
