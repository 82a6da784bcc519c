// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// Messages and attributes of xfrm, which x/sys does not name (linux/xfrm.h).
const (
	xfrmDeleteState  = 0x11
	xfrmGetState     = 0x12
	xfrmDeletePolicy = 0x14
	xfrmGetPolicy    = 0x15

	xfrmaPolicyType = 16
	xfrmaMark       = 21
	xfrmaIfID       = 31
)

// Sizes of structs, and where their fields are.
const (
	sizeofSelector   = 56 // struct xfrm_selector, which begins with the destination
	selectorSource   = 16
	selectorFamily   = 40
	destinationBits  = 42
	sourceBits       = 43
	sizeofPolicyInfo = 168 // struct xfrm_userpolicy_info, which begins with a selector
	policyIndex      = 156
	policyDirection  = 160
	sizeofStateInfo  = 224 // struct xfrm_usersa_info, likewise
	stateID          = 56  // struct xfrm_id: destination, SPI, protocol
	stateSource      = 80
	stateFamily      = 212
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
	typ     uint16
	request string
}

// Policies lists IPsec policies.
func (c *Conn) Policies(ctx context.Context) ([]XFRM, error) {
	return list(ctx, c, xfrmGetPolicy, parsePolicy)
}

// States lists IPsec states.
func (c *Conn) States(ctx context.Context) ([]XFRM, error) {
	return list(ctx, c, xfrmGetState, parseState)
}

// DeleteXFRM deletes a policy or a state; already gone is success.
func (c *Conn) DeleteXFRM(id XFRMID) error {
	err := c.change(id.typ, 0, []byte(id.request))
	if nlmsg.Gone(err) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// xfrmAttrs reads the attributes common to both kinds of messages, and adds to a request
// those that the kernel compares when it deletes. A message may end in padding that
// belongs to no attribute.
func xfrmAttrs(b []byte, request []byte) (Mark, []byte, error) {
	var mark Mark
	err := nlmsg.Attrs(b, func(typ uint16, value []byte) error {
		switch typ {
		case xfrmaMark:
			if len(value) < 8 {
				return fmt.Errorf("xfrm mark of %d bytes", len(value))
			}
			mark = Mark{nlmsg.U32(value), nlmsg.U32(value[4:])}
		case xfrmaIfID, xfrmaPolicyType:
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
	if len(msg) < sizeofPolicyInfo {
		return XFRM{}, fmt.Errorf("xfrm policy message of %d bytes is too short", len(msg))
	}
	index, direction := msg[policyIndex:policyIndex+4], msg[policyDirection]
	id := slices.Concat(msg[:sizeofSelector], index, []byte{direction, 0, 0, 0}) // struct xfrm_userpolicy_id
	mark, request, err := xfrmAttrs(msg[sizeofPolicyInfo:], id)
	dir := fmt.Sprintf("direction %d", direction)
	if int(direction) < len(policyDirections) {
		dir = policyDirections[direction]
	}
	family := binary.NativeEndian.Uint16(msg[selectorFamily:])
	text := fmt.Sprintf("%s from %s to %s index %d", dir,
		netip.PrefixFrom(xfrmAddr(family, msg[selectorSource:]), int(msg[sourceBits])),
		netip.PrefixFrom(xfrmAddr(family, msg), int(msg[destinationBits])), nlmsg.U32(index))
	return XFRM{XFRMID{xfrmDeletePolicy, string(request)}, mark, text}, err
}

func parseState(msg []byte) (XFRM, error) {
	if len(msg) < sizeofStateInfo {
		return XFRM{}, fmt.Errorf("xfrm state message of %d bytes is too short", len(msg))
	}
	destination, spi, proto := msg[stateID:stateID+16], msg[stateID+16:stateID+20], msg[stateID+20]
	family := msg[stateFamily : stateFamily+2]
	id := slices.Concat(destination, spi, family, []byte{proto, 0}) // struct xfrm_usersa_id
	mark, request, err := xfrmAttrs(msg[sizeofStateInfo:], id)
	version := binary.NativeEndian.Uint16(family)
	text := fmt.Sprintf("from %s to %s proto %s spi 0x%x",
		xfrmAddr(version, msg[stateSource:]), xfrmAddr(version, destination),
		xfrmProto(proto), binary.BigEndian.Uint32(spi))
	return XFRM{XFRMID{xfrmDeleteState, string(request)}, mark, text}, err
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

// xfrmAddr reads xfrm_address_t, which b begins with.
func xfrmAddr(family uint16, b []byte) netip.Addr {
	if family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16([16]byte(b[:16]))
}
