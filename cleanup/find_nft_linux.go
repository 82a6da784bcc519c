// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

// nftObject is a chain of iptables-nft, or a rule that jumps to one.
type nftObject struct{ netfilter.Object }

func findNFT(ctx context.Context, s *search) error {
	if !s.own.hasNetfilter(kindChain, s.own.ChainPrefixes) {
		return nil
	}
	sock, err := s.sockets.netfilter()
	if err != nil {
		return err
	}
	set, err := sock.Ruleset(ctx, s.own.ownsChain)
	for _, rule := range set.Jumps {
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s rule %s -> %s", rule.Table, rule.Chain, rule.JumpsTo),
			Detail: fmt.Sprintf("handle %d", rule.Handle),
			object: nftObject{rule},
		})
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

// remove deletes one chain or rule; removeNFT deletes many.
func (o nftObject) remove(ctx context.Context, r *removal) (err error) {
	removeNFT(ctx, r, []nftObject{o}, func(_ int, e error) { err = e })
	return err
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
		sock.Delete(ctx, r.own.ownsChain, list, done)
	}
}
