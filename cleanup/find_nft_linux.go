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

// nftObject is a chain of iptables-nft, or a rule in a chain of another owner.
type nftObject struct{ netfilter.Object }

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
			object: nftObject{rule},
		}, nameOf(kindNFT, fmt.Sprintf("%s chain %s", rule.Table, rule.JumpsTo)))
	}
	for _, chain := range set.SortedChains() {
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s chain %s", chain.Table, chain.Name),
			Detail: count(len(set.Chains[chain]), "rule", "rules"),
			object: nftObject{chain},
		})
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
func removeNFT(ctx context.Context, r *removal, objects []nftObject, done func(i int, err error)) {
	sock, err := r.sockets.netfilter()
	list := make([]netfilter.Object, len(objects))
	for i, o := range objects {
		if list[i] = o.Object; err != nil {
			done(i, err)
		}
	}
	if err == nil {
		sock.Delete(ctx, r.own.iptables(), list, done)
	}
}
