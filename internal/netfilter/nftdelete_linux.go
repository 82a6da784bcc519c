// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// maxTries bounds how often a transaction is repeated without the refused objects.
const maxTries = 16

// Delete deletes rules and chains in one transaction: first the rules that jump
// to owned chains, then the rules in them, then the chains. If the kernel refuses some,
// the transaction is repeated without them. It calls done for each object by its index,
// or for none if ctx is done.
func (c *Conn) Delete(ctx context.Context, owned func(chain string) bool, objects []Object, done func(i int, err error)) {
	refused := map[Object]error{}
	again, last := true, error(nil)
	for try := 0; again && try < maxTries; try++ {
		if ctx.Err() != nil {
			return
		}
		again, last = c.tryDelete(ctx, owned, objects, refused)
	}
	if again && last == nil {
		last = fmt.Errorf("changed by another program during each of %d tries", maxTries)
	}
	for i, object := range objects {
		err, known := refused[object]
		if !known {
			err = last
		}
		done(i, err)
	}
}

// tryDelete adds the objects that the kernel refuses to refused. again is true if there
// are new ones: then the others still exist.
func (c *Conn) tryDelete(ctx context.Context, owned func(string) bool, objects []Object, refused map[Object]error) (again bool, err error) {
	set, err := c.Ruleset(ctx, owned)
	if err != nil {
		return false, err
	}
	msgs, about := set.deletions(objects, refused)
	if len(msgs) == 0 {
		return false, nil
	}
	errs, err := c.transaction(unix.NFNL_SUBSYS_NFTABLES, msgs)
	for i, err := range errs {
		if !nlmsg.Gone(err) {
			refused[about[i]] = busyHint(err)
		}
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		return true, err
	}
	return len(errs) > 0, err
}

func busyHint(err error) error {
	if errors.Is(err, unix.EBUSY) {
		return remedy.Add(err, "another rule or a map refers to it")
	}
	return err
}

// deletions returns the messages for the objects that still exist and were not refused
// before, and the object of each message.
func (s *Ruleset) deletions(objects []Object, refused map[Object]error) (msgs []nlmsg.Request, about []Object) {
	add := func(object Object, msg nlmsg.Request) {
		msgs, about = append(msgs, msg), append(about, object)
	}
	var chains []Chain
	for _, object := range objects {
		if refused[object] != nil {
			continue
		}
		switch object := object.(type) {
		case Rule:
			if slices.Contains(s.Jumps, object) {
				add(object, object.deletion())
			}
		case Chain:
			if _, there := s.Chains[object]; there {
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

func (r Rule) deletion() nlmsg.Request {
	return request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELRULE, unix.NLM_F_ACK, r.family,
		nlmsg.String(unix.NFTA_RULE_TABLE, r.name),
		nlmsg.String(unix.NFTA_RULE_CHAIN, r.Chain),
		handle(unix.NFTA_RULE_HANDLE, r.Handle))
}

// deletion is refused with EBUSY while a rule is in the chain (NLM_F_NONREC), such as one
// added meanwhile.
func (c Chain) deletion() nlmsg.Request {
	return request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELCHAIN, unix.NLM_F_ACK|unix.NLM_F_NONREC, c.family,
		nlmsg.String(unix.NFTA_CHAIN_TABLE, c.name),
		handle(unix.NFTA_CHAIN_HANDLE, c.handle))
}

// handle encodes a handle as an attribute.
func handle(typ uint16, value uint64) []byte {
	return nlmsg.Append(nil, typ, binary.BigEndian.AppendUint64(nil, value))
}
