// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// Rule is one rule of policy routing.
type Rule struct {
	Family   uint8
	Priority uint32
	Mark     Mark
	From, To netip.Prefix // without bits if the rule does not compare them
	Table    uint32
	Not      bool  // it selects all other packets
	ToTable  bool  // it sends packets to its table
	Plain    bool  // it does, and selects them by mark, From and To alone
	Protocol uint8 // the program that made it; 0 if the kernel or the program does not set it
	Request  RuleRequest
}

// RuleRequest is the message that deletes a rule. It identifies the rule.
type RuleRequest string

// Mark is a packet mark and the bits of it that count.
type Mark struct{ Value, Mask uint32 }

// sizeofRuleHdr is the size of struct fib_rule_hdr.
const sizeofRuleHdr = unix.SizeofRtMsg

// Rules lists the rules of a family.
func (c *Conn) Rules(ctx context.Context, family uint8) ([]Rule, error) {
	rules, err := list(ctx, c, unix.RTM_GETRULE, parseRule, familyHeader(family))
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return slices.DeleteFunc(rules, func(r Rule) bool { return r.Family != family }), nil
}

func parseRule(msg []byte) (Rule, error) {
	if len(msg) < sizeofRuleHdr {
		return Rule{}, fmt.Errorf("rule message of %d bytes is too short", len(msg))
	}
	header := *nl.DeserializeRtMsg(msg)
	header.Flags &= netlink.FibRuleInvert // the others are the state of its links
	r := Rule{Family: header.Family, Table: uint32(header.Table), Not: header.Flags != 0, ToTable: header.Type == nl.FR_ACT_TO_TBL}
	r.Plain, r.Request = r.ToTable && header.Tos == 0, RuleRequest(header.Serialize())
	var from, to []byte
	err := nlread.Attributes(msg[sizeofRuleHdr:], func(typ uint16, value []byte) {
		if typ == nl.FRA_PAD || typ == nl.FRA_SUPPRESS_PREFIXLEN && nlread.U32(value) == ^uint32(0) {
			return // it says nothing, or that the rule suppresses none
		}
		r.Request += RuleRequest(attribute(typ, value))
		switch typ {
		case nl.FRA_PRIORITY:
			r.Priority = nlread.U32(value)
		case nl.FRA_TABLE:
			r.Table = nlread.U32(value)
		case nl.FRA_FWMARK:
			r.Mark.Value = nlread.U32(value)
		case nl.FRA_FWMASK:
			r.Mark.Mask = nlread.U32(value)
		case nl.FRA_SRC:
			from = value
		case nl.FRA_DST:
			to = value
		case nl.FRA_PROTOCOL:
			if len(value) == 1 {
				r.Protocol = value[0]
			}
		default:
			r.Plain = false
		}
	})
	var fromErr, toErr error
	r.From, fromErr = prefixOf(r.Family, from, header.Src_len)
	r.To, toErr = prefixOf(r.Family, to, header.Dst_len)
	return r, errors.Join(err, fromErr, toErr)
}

// WithPriority returns the request of a rule that differs in its priority only: of two
// attributes, the kernel takes the last.
func (q RuleRequest) WithPriority(priority uint32) RuleRequest {
	return q + RuleRequest(number(nl.FRA_PRIORITY, priority))
}

// canMean reports whether the kernel could delete the other rule instead of this one. It
// compares the attributes in the request (fib_nl_delrule of Linux), but none that is 0 or
// that only the other rule has.
func (q RuleRequest) canMean(other RuleRequest) bool {
	for i := range 8 {
		if q[i] != 0 && q[i] != other[i] && i != 4 { // the table is in an attribute, too
			return false
		}
	}
	has := other.compared()
	return !slices.ContainsFunc(q.compared(), func(a string) bool { return !slices.Contains(has, a) })
}

// compared returns the attributes that are not 0.
func (q RuleRequest) compared() (attributes []string) {
	// They are those of a message, which were whole.
	_ = nlread.Attributes([]byte(q[sizeofRuleHdr:]), func(typ uint16, value []byte) {
		if len(bytes.Trim(value, "\x00")) > 0 {
			attributes = append(attributes, attribute(typ, value))
		}
	})
	return attributes
}

// Rules are rules by what they select: to find one takes no longer among thousands of one
// priority and table, as a node has for its pods.
type Rules struct {
	count map[RuleRequest]int
	with  map[string][]RuleRequest // by each attribute; "": all
}

// NewRules returns no rules.
func NewRules() *Rules { return &Rules{map[RuleRequest]int{}, map[string][]RuleRequest{}} }

// Add adds a rule.
func (s *Rules) Add(r Rule) {
	if s.count[r.Request]++; s.count[r.Request] == 1 {
		for _, attribute := range append(r.Request.compared(), "") {
			s.with[attribute] = append(s.with[attribute], r.Request)
		}
	}
}

// Deleted takes a rule away.
func (s *Rules) Deleted(q RuleRequest) { s.count[q]-- }

// Find reports whether the rule is there, and whether there is another one that the kernel
// could delete instead.
func (s *Rules) Find(q RuleRequest) (exists, ambiguous bool) {
	likely := s.with[""]
	for _, attribute := range q.compared() {
		if with := s.with[attribute]; len(with) < len(likely) {
			likely = with
		}
	}
	return s.count[q] > 0, slices.ContainsFunc(likely, func(other RuleRequest) bool {
		return other != q && s.count[other] > 0 && q.canMean(other)
	})
}

// DeleteRule deletes the first rule that the kernel finds with all that the
// request has; already gone is success.
func (c *Conn) DeleteRule(q RuleRequest) error {
	return nlread.Except(c.change(unix.RTM_DELRULE, 0, []byte(q)), unix.ENOENT, unix.ENODEV)
}

// AddRule makes the rule of the request; one that already exists is success.
func (c *Conn) AddRule(q RuleRequest) error {
	return nlread.Except(c.change(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, []byte(q)), unix.EEXIST)
}
