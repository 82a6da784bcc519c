// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// route is one route of a dump.
type route struct {
	family   uint8
	table    uint32
	typ      uint8
	protocol uint8
	dst, src netip.Prefix
	gateway  netip.Addr
	metric   uint32
	links    []int // of its next hops
	hops     []hop // of RTA_MULTIPATH
	nexthop  bool  // they are an object of their own
	msg      []byte
}

// hop is one of several next hops, as it is written in a request.
type hop struct {
	link int
	dead bool   // its link is down
	msg  []byte // struct rtnexthop with its attributes
}

// rawMessage is a message that is sent as it is.
type rawMessage string

func (m rawMessage) Len() int { return len(m) }

func (m rawMessage) Serialize() []byte { return []byte(m) }

// Attributes of routes that x/sys does not name (linux/rtnetlink.h).
const (
	rtaVia       = 18
	rtaEncapType = 21
	rtaEncap     = 22
	rtaNexthop   = 30
)

// deleteBy are the attributes by which a route is deleted; the others tell of
// its age, or of the answer to a look-up.
var deleteBy = map[uint16]bool{
	unix.RTA_DST: true, unix.RTA_SRC: true, unix.RTA_OIF: true, unix.RTA_GATEWAY: true,
	unix.RTA_PRIORITY: true, unix.RTA_PREFSRC: true, unix.RTA_METRICS: true, unix.RTA_MULTIPATH: true,
	unix.RTA_TABLE: true, rtaVia: true, unix.RTA_PREF: true, rtaEncapType: true, rtaEncap: true, rtaNexthop: true,
}

// nextHop are those that a next hop object stands for: a request has one or
// the other.
var nextHop = map[uint16]bool{
	unix.RTA_OIF: true, unix.RTA_GATEWAY: true, unix.RTA_MULTIPATH: true, rtaVia: true, rtaEncapType: true, rtaEncap: true,
}

// routes lists the routes of a family in all tables, in one dump.
func (r *rtnl) routes(ctx context.Context, family uint8) ([]route, error) {
	msg := &nl.RtMsg{RtMsg: unix.RtMsg{Family: family}}
	msgs, err := r.dump(ctx, unix.RTM_GETROUTE, unix.RTM_NEWROUTE, msg)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil // a kernel without this family
	}
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	out := make([]route, 0, len(msgs))
	for _, msg := range msgs {
		route, cloned, err := parseRoute(msg)
		if err != nil {
			return nil, err
		}
		// Where the answer is by another family there is none of this one.
		if !cloned && route.family == family {
			out = append(out, route)
		}
	}
	return out, nil
}

// parseRoute reads a message; cloned are entries of the cache.
func parseRoute(msg []byte) (r route, cloned bool, err error) {
	if len(msg) < unix.SizeofRtMsg {
		return r, false, fmt.Errorf("route message of %d bytes is too short", len(msg))
	}
	r.family, r.table, r.protocol, r.typ = msg[0], uint32(msg[4]), msg[5], msg[7]
	r.msg = msg
	var dst, src []byte
	err = attrs(msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) error {
		switch typ {
		case unix.RTA_DST:
			dst = value
		case unix.RTA_SRC:
			src = value
		case unix.RTA_TABLE:
			r.table = u32(value)
		case unix.RTA_PRIORITY:
			r.metric = u32(value)
		case unix.RTA_GATEWAY:
			r.gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_OIF:
			r.links = append(r.links, int(u32(value)))
		case unix.RTA_MULTIPATH:
			return r.parseHops(value)
		case rtaNexthop:
			r.nexthop = true
		}
		return nil
	})
	if err != nil {
		return r, false, err
	}
	var dstErr, srcErr error
	r.dst, dstErr = prefixOf(r.family, dst, msg[1])
	r.src, srcErr = prefixOf(r.family, src, msg[2])
	return r, u32(msg[8:])&unix.RTM_F_CLONED != 0, errors.Join(dstErr, srcErr)
}

// parseHops reads RTA_MULTIPATH, a list of struct rtnexthop.
func (r *route) parseHops(b []byte) error {
	for len(b) >= unix.SizeofRtNexthop {
		size := int(nl.NativeEndian().Uint16(b))
		if size < unix.SizeofRtNexthop || size > len(b) {
			return fmt.Errorf("next hop of %d bytes in %d", size, len(b))
		}
		h := hop{int(int32(u32(b[4:]))), b[2]&unix.RTNH_F_DEAD != 0, append([]byte{}, b[:size]...)}
		h.msg[2] &= unix.RTNH_F_ONLINK // the other flags say how its link is
		h.msg = append(h.msg, make([]byte, (4-size%4)%4)...)
		r.links, r.hops = append(r.links, h.link), append(r.hops, h)
		b = b[min(len(b), (size+3)&^3):]
	}
	return nil
}

// deleteRequest makes a request to delete the route.
func (r route) deleteRequest() string { return r.request(r.hops) }

// request makes a message with what identifies the route, and the given ones of
// its next hops where it has several.
func (r route) request(hops []hop) string {
	out := append([]byte{}, r.msg[:unix.SizeofRtMsg]...)
	clear(out[8:]) // flags, which say how its links are
	// The message was read before, so its attributes are whole.
	_ = attrs(r.msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) error {
		if !deleteBy[typ] || r.nexthop && nextHop[typ] {
			return nil
		}
		if typ == unix.RTA_MULTIPATH {
			value = nil
			for _, h := range hops {
				value = append(value, h.msg...)
			}
		}
		out = appendAttr(out, typ, value)
		return nil
	})
	return string(out)
}

// goesWithAnyLink reports whether the kernel deletes the route with any of its
// links: of an IPv6 route, and of next hops that are objects, it takes away no
// more than those whose link goes.
func (r route) goesWithAnyLink() bool { return r.family == unix.AF_INET && !r.nexthop }

// foreignHops returns the next hops that do not lead through the given links,
// but not those whose link is down: the kernel accepts none. all reports whether
// there is no such.
func (r route) foreignHops(owned map[int]bool) (hops []hop, all bool) {
	all = true
	for _, h := range r.hops {
		switch {
		case owned[h.link]:
		case h.dead:
			all = false
		default:
			hops = append(hops, h)
		}
	}
	return hops, all
}

// appendRoute adds a route behind those of the same destination and metric; one
// that is there already is success.
func (r *rtnl) appendRoute(request string) error {
	_, err := r.execute(unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_APPEND, 0, rawMessage(request))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

func appendAttr(b []byte, typ uint16, value []byte) []byte {
	size := unix.SizeofRtAttr + len(value)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, (4-size%4)%4)...)
}
