// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const kindRule = "ip rule"

// policyRule is one rule of a dump.
type policyRule struct {
	ruleRef
	action uint8
	plain  bool // selects by its mark alone
	from   netip.Prefix
}

// ruleRef identifies a rule.
type ruleRef struct {
	family   uint8
	priority uint32
	PolicyRule
	protocol uint8
}

// sizeofRuleHdr is the size of struct fib_rule_hdr, and ruleInvert a flag in it.
const (
	sizeofRuleHdr = 12
	ruleInvert    = 2
	ruleToTable   = 1 // its action, FR_ACT_TO_TBL
)

// findRules lists owned rules, and foreign ones that lead to shared tables.
func findRules(ctx context.Context, s *session) error {
	if len(s.own.Rules)+len(s.own.SharedTables) == 0 {
		return nil
	}
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	var errs errorSet
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := sock.rules(ctx, family)
		errs.add(err)
		for _, r := range list {
			item := Item{Kind: kindRule, Object: r.describe()}
			switch {
			case r.plain && slices.Contains(s.own.Rules, r.PolicyRule):
				item.ref = r.ruleRef
				s.found(item)
			case r.action == ruleToTable && slices.Contains(s.own.SharedTables, r.Table):
				item.Detail = fmt.Sprintf("foreign, to table %d that others use, too", r.Table)
				s.leave(item)
			}
		}
	}
	return errs.join()
}

func (r policyRule) describe() string {
	family := "IPv4"
	if r.family == unix.AF_INET6 {
		family = "IPv6"
	}
	out := fmt.Sprintf("%s %d:", family, r.priority)
	if r.from.Bits() > 0 {
		out += " from " + r.from.String()
	}
	if r.Mark.Mask != 0 {
		out += " fwmark " + r.Mark.String()
	}
	return out + fmt.Sprintf(" lookup %d", r.Table)
}

// rules lists the rules of a family.
func (r *rtnl) rules(ctx context.Context, family uint8) ([]policyRule, error) {
	msgs, err := r.dump(ctx, unix.RTM_GETRULE, unix.RTM_NEWRULE, &nl.RtMsg{RtMsg: unix.RtMsg{Family: family}})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil // a kernel without policy routing
	}
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var out []policyRule
	for _, msg := range msgs {
		rule, err := parseRule(msg)
		if err != nil {
			return nil, err
		}
		if rule.family == family {
			out = append(out, rule)
		}
	}
	return out, nil
}

func parseRule(msg []byte) (policyRule, error) {
	if len(msg) < sizeofRuleHdr {
		return policyRule{}, fmt.Errorf("rule message of %d bytes is too short", len(msg))
	}
	var r policyRule
	var from []byte
	r.family, r.Table, r.action = msg[0], uint32(msg[4]), msg[7]
	lengthsAndTOS := msg[1] | msg[2] | msg[3]
	r.plain = lengthsAndTOS == 0 && u32(msg[8:])&ruleInvert == 0 && r.action == ruleToTable
	err := attrs(msg[sizeofRuleHdr:], func(typ uint16, value []byte) error {
		switch typ {
		case nl.FRA_PRIORITY:
			r.priority = u32(value)
		case nl.FRA_TABLE:
			r.Table = u32(value)
		case nl.FRA_FWMARK:
			r.Mark.Value = u32(value)
		case nl.FRA_FWMASK:
			r.Mark.Mask = u32(value)
		case nl.FRA_PROTOCOL:
			r.protocol = u8(value)
		case nl.FRA_SRC:
			from = value
		case nl.FRA_SUPPRESS_PREFIXLEN:
			r.plain = r.plain && u32(value) == ^uint32(0)
		case nl.FRA_PAD:
		default:
			r.plain = false
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.from, err = prefixOf(r.family, from, msg[2])
	return r, err
}

// removeRule deletes a rule if it is the only one that the request can mean.
func removeRule(ctx context.Context, s *session, item Item) error {
	ref, ok := item.ref.(ruleRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	list, err := sock.rules(ctx, ref.family)
	if err != nil {
		return err
	}
	there := false
	for _, r := range list {
		if r.ruleRef != ref {
			continue
		}
		if !r.plain {
			return errors.New("a more special rule of the same priority, mark and table is there, and the kernel could take it for this one; left as it is")
		}
		there = true
	}
	if !there {
		return nil
	}
	err = sock.change(unix.RTM_DELRULE, rawMessage(ref.request()))
	if gone(err) {
		return nil
	}
	return err
}

func (r ruleRef) request() []byte {
	out := make([]byte, sizeofRuleHdr)
	out[0], out[7] = r.family, ruleToTable
	out = appendAttr(out, nl.FRA_PRIORITY, nl.Uint32Attr(r.priority))
	out = appendAttr(out, nl.FRA_TABLE, nl.Uint32Attr(r.Table))
	out = appendAttr(out, nl.FRA_FWMARK, nl.Uint32Attr(r.Mark.Value))
	out = appendAttr(out, nl.FRA_FWMASK, nl.Uint32Attr(r.Mark.Mask))
	return appendAttr(out, nl.FRA_PROTOCOL, []byte{r.protocol})
}
