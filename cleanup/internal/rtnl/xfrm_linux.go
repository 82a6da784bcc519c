// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// XFRM is an IPsec policy or state.
type XFRM struct {
	XFRMID
	Mark Mark
	Text string // a description for people
}

// XFRMID identifies a policy or a state by the request that deletes it: a
// policy's index and selector, a state's destination, protocol and SPI.
type XFRMID struct {
	typ     int
	request string
}

// NewXFRM returns a socket for IPsec. The error of its requests is EPROTONOSUPPORT on a kernel
// without xfrm.
func NewXFRM() Conn { return Conn{proto: unix.NETLINK_XFRM} }

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
	return nlread.Except(c.change(id.typ, 0, []byte(id.request)), unix.ENOENT, unix.ENODEV, unix.ESRCH)
}

// xfrmAttrs reads the attributes common to both kinds of messages, and adds to a request
// those that the kernel compares when it deletes.
func xfrmAttrs(b []byte, request []byte) (mark Mark, _ string, err error) {
	attrs, err := nlread.Values(b)
	for _, typ := range []uint16{nl.XFRMA_MARK, nl.XFRMA_IF_ID, nl.XFRMA_POLICY_TYPE} {
		if value, ok := attrs[typ]; ok {
			request = append(request, nl.NewRtAttr(int(typ), value).Serialize()...)
		}
	}
	if value := attrs[nl.XFRMA_MARK]; len(value) >= nl.SizeofXfrmMark {
		mark = Mark(*nl.DeserializeXfrmMark(value))
	}
	return mark, string(request), err
}

var policyDirections = []string{"in", "out", "fwd"}

func parsePolicy(msg []byte) (XFRM, error) {
	if len(msg) < nl.SizeofXfrmUserpolicyInfo {
		return XFRM{}, fmt.Errorf("xfrm policy message of %d bytes is too short", len(msg))
	}
	p := nl.DeserializeXfrmUserpolicyInfo(msg)
	id := nl.XfrmUserpolicyId{Sel: p.Sel, Index: p.Index, Dir: p.Dir}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUserpolicyInfo:], id.Serialize())
	dir := fmt.Sprintf("direction %d", p.Dir)
	if int(p.Dir) < len(policyDirections) {
		dir = policyDirections[p.Dir]
	}
	text := fmt.Sprintf("%s from %s to %s index %d", dir,
		netip.PrefixFrom(xfrmAddr(p.Sel.Family, p.Sel.Saddr), int(p.Sel.PrefixlenS)),
		netip.PrefixFrom(xfrmAddr(p.Sel.Family, p.Sel.Daddr), int(p.Sel.PrefixlenD)), p.Index)
	return XFRM{XFRMID{nl.XFRM_MSG_DELPOLICY, request}, mark, text}, err
}

func parseState(msg []byte) (XFRM, error) {
	if len(msg) < nl.SizeofXfrmUsersaInfo {
		return XFRM{}, fmt.Errorf("xfrm state message of %d bytes is too short", len(msg))
	}
	s := nl.DeserializeXfrmUsersaInfo(msg)
	id := nl.XfrmUsersaId{Daddr: s.Id.Daddr, Spi: s.Id.Spi, Family: s.Family, Proto: s.Id.Proto}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUsersaInfo:], id.Serialize())
	text := fmt.Sprintf("from %s to %s proto %s spi 0x%x",
		xfrmAddr(s.Family, s.Saddr), xfrmAddr(s.Family, s.Id.Daddr), netlink.Proto(s.Id.Proto), nl.Swap32(s.Id.Spi))
	return XFRM{XFRMID{nl.XFRM_MSG_DELSA, request}, mark, text}, err
}

// xfrmAddr reads an address of a family. Package nl guesses the family.
func xfrmAddr(family uint16, address nl.XfrmAddress) netip.Addr {
	if family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(address[:4]))
	}
	return netip.AddrFrom16(address)
}
