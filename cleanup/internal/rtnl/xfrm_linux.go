// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/nlmsg"
)

// XFRM is an IPsec policy or state.
type XFRM struct {
	XFRMID
	Mark Mark
	Text string // what it is, for people
}

// XFRMID identifies a policy or a state by the request that deletes it: a
// policy's index and selector, a state's destination, protocol and SPI.
type XFRMID struct {
	typ     int
	request string
}

// Policies lists IPsec policies.
func (c *Conn) Policies(ctx context.Context) ([]XFRM, error) {
	return list(ctx, c, nl.XFRM_MSG_GETPOLICY, parsePolicy)
}

// States lists IPsec states.
func (c *Conn) States(ctx context.Context) ([]XFRM, error) {
	return list(ctx, c, nl.XFRM_MSG_GETSA, parseState)
}

// DeleteXFRM deletes a policy or a state; already gone is success.
func (c *Conn) DeleteXFRM(id XFRMID) error {
	err := c.change(id.typ, nlmsg.Raw(id.request))
	if nlmsg.Gone(err) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// xfrmAttrs reads what both kinds of messages have, and adds to a request what
// the kernel compares when it deletes. A message may end in padding that belongs
// to no attribute.
func xfrmAttrs(b []byte, request []byte) (Mark, []byte, error) {
	var mark Mark
	err := nlmsg.Attrs(b, func(typ uint16, value []byte) error {
		switch typ {
		case nl.XFRMA_MARK:
			if len(value) < nl.SizeofXfrmMark {
				return fmt.Errorf("xfrm mark of %d bytes", len(value))
			}
			mark = Mark{nlmsg.U32(value), nlmsg.U32(value[4:])}
		case nl.XFRMA_IF_ID, nl.XFRMA_POLICY_TYPE:
		default:
			return nil
		}
		request = nlmsg.Append(request, typ, value)
		return nil
	})
	return mark, request, err
}

var policyDirections = []string{"in", "out", "fwd"}

func parsePolicy(msg []byte) (XFRM, error) {
	if len(msg) < nl.SizeofXfrmUserpolicyInfo {
		return XFRM{}, fmt.Errorf("xfrm policy message of %d bytes is too short", len(msg))
	}
	info := nl.DeserializeXfrmUserpolicyInfo(msg)
	id := nl.XfrmUserpolicyId{Sel: info.Sel, Index: info.Index, Dir: info.Dir}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUserpolicyInfo:], append([]byte{}, id.Serialize()...))
	dir := fmt.Sprintf("direction %d", info.Dir)
	if int(info.Dir) < len(policyDirections) {
		dir = policyDirections[info.Dir]
	}
	text := fmt.Sprintf("%s from %s to %s index %d", dir,
		xfrmPrefix(info.Sel.Family, info.Sel.Saddr, info.Sel.PrefixlenS),
		xfrmPrefix(info.Sel.Family, info.Sel.Daddr, info.Sel.PrefixlenD), info.Index)
	return XFRM{XFRMID{nl.XFRM_MSG_DELPOLICY, string(request)}, mark, text}, err
}

func parseState(msg []byte) (XFRM, error) {
	if len(msg) < nl.SizeofXfrmUsersaInfo {
		return XFRM{}, fmt.Errorf("xfrm state message of %d bytes is too short", len(msg))
	}
	info := nl.DeserializeXfrmUsersaInfo(msg)
	id := nl.XfrmUsersaId{Daddr: info.Id.Daddr, Spi: info.Id.Spi, Family: info.Family, Proto: info.Id.Proto}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUsersaInfo:], append([]byte{}, id.Serialize()...))
	text := fmt.Sprintf("from %s to %s proto %s spi 0x%x",
		xfrmAddr(info.Family, info.Saddr), xfrmAddr(info.Family, info.Id.Daddr),
		xfrmProto(info.Id.Proto), nl.Swap32(info.Id.Spi))
	return XFRM{XFRMID{nl.XFRM_MSG_DELSA, string(request)}, mark, text}, err
}

func xfrmProto(proto uint8) string {
	switch proto {
	case unix.IPPROTO_ESP:
		return "esp"
	case unix.IPPROTO_AH:
		return "ah"
	}
	return fmt.Sprint(proto)
}

func xfrmAddr(family uint16, addr nl.XfrmAddress) netip.Addr {
	if family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(addr[:4]))
	}
	return netip.AddrFrom16(addr)
}

func xfrmPrefix(family uint16, addr nl.XfrmAddress, bits uint8) netip.Prefix {
	return netip.PrefixFrom(xfrmAddr(family, addr), int(bits))
}
