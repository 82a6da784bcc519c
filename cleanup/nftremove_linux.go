// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// nftTries bounds how often a transaction is tried anew without what the
// kernel refused.
const nftTries = 16

// removeNFT removes rules and chains in one transaction: first the rules that
// jump to owned chains, then the rules in them, then the chains. Where the
// kernel refuses some, the transaction is repeated without them.
func removeNFT(ctx context.Context, s *session, items []Item, done doneFunc) {
	failed := map[any]error{}
	again, last := true, error(nil)
	for try := 0; again && try < nftTries; try++ {
		if ctx.Err() != nil {
			return
		}
		again, last = s.removeNFTOnce(ctx, items, failed)
	}
	if again && last == nil {
		last = fmt.Errorf("changed by somebody else during each of %d tries", nftTries)
	}
	for _, item := range items {
		err, refused := failed[item.ref]
		if !refused {
			err = last
		}
		done(item, err)
	}
}

// removeNFTOnce adds to failed what the kernel refused. It returns again if
// that is news, so that the others are still there.
func (s *session) removeNFTOnce(ctx context.Context, items []Item, failed map[any]error) (again bool, err error) {
	state, err := s.nft(ctx)
	if err != nil {
		return false, err
	}
	msgs, refs := state.deletions(items, failed)
	if len(msgs) == 0 {
		return false, nil
	}
	sock, err := s.netfilter()
	if err != nil {
		return false, err
	}
	refused, err := sock.transaction(unix.NFNL_SUBSYS_NFTABLES, msgs)
	for at, err := range refused {
		if !gone(err) {
			failed[refs[at]] = nftHint(err)
		}
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		return true, err
	}
	return len(refused) > 0, err
}

func nftHint(err error) error {
	if errors.Is(err, unix.EBUSY) {
		return remedy.Add(err, "another rule or a map refers to it")
	}
	return err
}

// deletions returns the messages for those items that are still there and were
// not refused before, and the identity that each message is for.
func (s *nftState) deletions(items []Item, failed map[any]error) (msgs []*nl.NetlinkRequest, refs []any) {
	add := func(ref any, msg *nl.NetlinkRequest) {
		msgs, refs = append(msgs, msg), append(refs, ref)
	}
	var chains []nftChainRef
	for _, item := range items {
		if failed[item.ref] != nil {
			continue
		}
		switch ref := item.ref.(type) {
		case nftRuleRef:
			if slices.Contains(s.jumps, ref) {
				add(ref, ref.deletion())
			}
		case nftChainRef:
			if _, there := s.chains[ref]; there {
				chains = append(chains, ref)
			}
		}
	}
	for _, chain := range chains {
		for _, rule := range s.chains[chain] {
			add(chain, rule.deletion())
		}
	}
	for _, chain := range chains {
		add(chain, chain.deletion())
	}
	return msgs, refs
}

func (r nftRuleRef) deletion() *nl.NetlinkRequest {
	return nfRequest(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELRULE, unix.NLM_F_ACK, r.family,
		nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(r.nftTable.name)),
		nl.NewRtAttr(unix.NFTA_RULE_CHAIN, nl.ZeroTerminated(r.chain)),
		nl.NewRtAttr(unix.NFTA_RULE_HANDLE, binary.BigEndian.AppendUint64(nil, r.handle)))
}

// deletion is refused as EBUSY while a rule is in the chain (NLM_F_NONREC), as
// one may be that came in between.
func (c nftChainRef) deletion() *nl.NetlinkRequest {
	return nfRequest(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELCHAIN, unix.NLM_F_ACK|unix.NLM_F_NONREC, c.family,
		nl.NewRtAttr(unix.NFTA_CHAIN_TABLE, nl.ZeroTerminated(c.nftTable.name)),
		nl.NewRtAttr(unix.NFTA_CHAIN_HANDLE, binary.BigEndian.AppendUint64(nil, c.handle)))
}
