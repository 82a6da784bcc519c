// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// maxTries bounds how often a transaction is repeated without the refused objects.
const maxTries = 16

// Delete deletes rules and chains in one transaction: first the rules in chains of other
// owners, then the rules in owned chains, then the chains. If the kernel refuses some,
// the transaction is repeated without them. It calls done for each object by its index,
// or for none if ctx is done.
func Delete(ctx context.Context, owned Owned, objects []Object, done func(i int, err error)) {
	refused := map[Object]error{}
	again, last := true, error(nil)
	for try := 0; again && try < maxTries; try++ {
		if ctx.Err() != nil {
			return
		}
		again, last = tryDelete(ctx, owned, objects, refused)
	}
	if again && last == nil {
		last = fmt.Errorf("changed by another program during each of %d tries", maxTries)
	}
	for i, object := range objects {
		err, known := refused[object]
		if !known {
			err = last
		}
		if chain, is := object.(Chain); is && errors.Is(err, unix.EBUSY) {
			err = explain(ctx, chain, err)
		}
		done(i, err)
	}
}

// tryDelete adds the objects that the kernel refuses to refused. again is true if there
// are new ones: then the others still exist.
func tryDelete(ctx context.Context, owned Owned, objects []Object, refused map[Object]error) (again bool, err error) {
	set, err := List(ctx, owned)
	if err != nil {
		return false, err
	}
	msgs, about := set.deletions(objects, refused)
	if len(msgs) == 0 {
		return false, nil
	}
	errs, err := transaction(unix.NFNL_SUBSYS_NFTABLES, msgs)
	for i, err := range errs {
		if !nlread.Gone(err) {
			refused[about[i]] = err
		}
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		return true, err
	}
	return len(errs) > 0, err
}

// UsedBy adds the users of an object, or some of many, to the error that it is in use.
func UsedBy(err error, users ...string) error {
	const most = 5
	if len(users) > most {
		users = append(users[:most:most], fmt.Sprintf("%d more", len(users)-most))
	}
	return remedy.Add(err, "used by "+strings.Join(users, "; "))
}

// explain adds the maps that lead to a chain, or their rules, to the error that the chain is
// in use. The rules that jump to it are removed before it.
func explain(ctx context.Context, chain Chain, busy error) error {
	req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETSET, unix.NLM_F_DUMP, chain.family, text(unix.NFTA_SET_TABLE, chain.name))
	maps, err := dump(ctx, req, unix.NFT_MSG_NEWSET, func(_ uint8, b []byte) (string, bool, error) {
		name, err := nlread.Value(b, unix.NFTA_SET_NAME)
		return unix.ByteSliceToString(name), err == nil, err
	})
	var users []string
	for _, name := range maps {
		req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, chain.family,
			text(unix.NFTA_SET_ELEM_LIST_TABLE, chain.name), text(unix.NFTA_SET_ELEM_LIST_SET, name))
		leads, e := dump(ctx, req, unix.NFT_MSG_NEWSETELEM, func(_ uint8, b []byte) (string, bool, error) {
			leads, err := leadsTo(b, chain.Name)
			return name, leads, err
		})
		err = errors.Join(err, e)
		switch {
		case len(leads) == 0:
		case strings.HasPrefix(name, "__"): // nft(8) made it for a rule
			rules, e := listRules(ctx, chain.Table, func(r *parsedRule) bool { return slices.Contains(r.lookups, name) })
			err = errors.Join(err, e)
			for _, r := range rules {
				users = append(users, fmt.Sprintf("a rule of chain %s in table %s, to delete with: nft delete rule %[2]s %[1]s handle %[3]d", r.Chain, r.Table, r.Handle))
			}
		default:
			users = append(users, fmt.Sprintf("an element of map %s in table %s: see nft list map %[2]s %[1]s, and nft delete element", name, chain.Table))
		}
	}
	if len(users) == 0 {
		users = []string{"a rule that another program added"}
	}
	return UsedBy(errors.Join(busy, err), users...)
}

// leadsTo reports whether elements of a map lead to a chain.
func leadsTo(elements []byte, chain string) (leads bool, err error) {
	list, err := nlread.Value(elements, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	listErr := nlread.Attributes(list, func(_ uint16, element []byte) {
		to, e := verdictChain(element, unix.NFTA_SET_ELEM_DATA)
		leads, err = leads || to == chain, errors.Join(err, e)
	})
	return leads, errors.Join(err, listErr)
}

// deletions returns the messages for the objects that still exist and were not refused
// before, and the object of each message.
func (s *Ruleset) deletions(objects []Object, refused map[Object]error) (msgs []*nl.NetlinkRequest, about []Object) {
	add := func(object Object, msg *nl.NetlinkRequest) {
		msgs, about = append(msgs, msg), append(about, object)
	}
	var chains []Chain
	rules := make(map[Rule]bool, len(s.Rules))
	for _, rule := range s.Rules {
		rules[rule] = true
	}
	for _, object := range objects {
		if refused[object] != nil {
			continue
		}
		switch object := object.(type) {
		case Rule:
			if rules[object] {
				add(object, object.deletion())
			}
		case Chain:
			if _, ok := s.Chains[object]; ok {
				chains = append(chains, object)
			}
		}
	}
	for _, chain := range chains {
		for _, rule := range s.Chains[chain] {
			add(chain, rule.deletion())
		}
	}
	for _, chain := range chains {
		add(chain, chain.deletion())
	}
	return msgs, about
}

func (r Rule) deletion() *nl.NetlinkRequest {
	return request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELRULE, unix.NLM_F_ACK, r.family,
		text(unix.NFTA_RULE_TABLE, r.name),
		text(unix.NFTA_RULE_CHAIN, r.Chain),
		handle(unix.NFTA_RULE_HANDLE, r.Handle))
}

// deletion is refused with EBUSY while a rule is in the chain (NLM_F_NONREC), such as one
// added meanwhile.
func (c Chain) deletion() *nl.NetlinkRequest {
	return request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELCHAIN, unix.NLM_F_ACK|unix.NLM_F_NONREC, c.family,
		text(unix.NFTA_CHAIN_TABLE, c.name),
		handle(unix.NFTA_CHAIN_HANDLE, c.handle))
}

// handle encodes a handle as an attribute.
func handle(typ int, value uint64) *nl.RtAttr { return nl.NewRtAttr(typ, nl.BEUint64Attr(value)) }
