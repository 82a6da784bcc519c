// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// Route is one route of a dump.
type Route struct {
	Family   uint8
	Table    uint32
	Type     uint8
	Protocol uint8
	Dst, Src netip.Prefix
	Gateway  netip.Addr
	Metric   uint32
	Links    []int // of its next hops
	Hops     []Hop // of RTA_MULTIPATH

	nexthop bool // the next hops are objects of their own
	cloned  bool // an entry of the cache
	msg     []byte
}

// Hop is one of several next hops, as it is written in a request.
type Hop struct {
	Link int
	Dead bool   // its link is down
	msg  []byte // struct rtnexthop with its attributes
}

// Attributes of routes that x/sys does not name (linux/rtnetlink.h).
const (
	rtaVia       = 18
	rtaEncapType = 21
	rtaEncap     = 22
	rtaNexthop   = 30
)

// deleteBy are the attributes by which a route is deleted; the others describe its age,
// or the answer to a look-up.
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

// Routes calls each with the routes of a family in all tables as they come, in one
// dump. It calls begin first, and once more whenever a change interrupts the dump: then
// all come again. A route's requests can be made only while each has it.
func (c *Conn) Routes(ctx context.Context, family uint8, begin func(), each func(Route)) error {
	err := c.dump(ctx, unix.RTM_GETROUTE, begin, func(msg []byte) error {
		r, err := parseRoute(msg)
		// If the kernel answers with a route of another family, this family has none.
		if err == nil && !r.cloned && r.Family == family {
			each(r)
		}
		return err
	}, familyHeader(family))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil // a kernel without this family
	}
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	return nil
}

// familyHeader makes a header of a route or rule, with nothing but a family.
func familyHeader(family uint8) []byte {
	msg := make([]byte, unix.SizeofRtMsg)
	msg[0] = family
	return msg
}

func parseRoute(msg []byte) (r Route, err error) {
	if len(msg) < unix.SizeofRtMsg {
		return r, fmt.Errorf("route message of %d bytes is too short", len(msg))
	}
	r.Family, r.Table, r.Protocol, r.Type = msg[0], uint32(msg[4]), msg[5], msg[7]
	r.msg, r.cloned = msg, nlmsg.U32(msg[8:])&unix.RTM_F_CLONED != 0
	var dst, src []byte
	err = nlmsg.Attrs(msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) error {
		switch typ {
		case unix.RTA_DST:
			dst = value
		case unix.RTA_SRC:
			src = value
		case unix.RTA_TABLE:
			r.Table = nlmsg.U32(value)
		case unix.RTA_PRIORITY:
			r.Metric = nlmsg.U32(value)
		case unix.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(value)
		case rtaVia: // of another family than the route, which is before the address
			r.Gateway, _ = netip.AddrFromSlice(value[min(2, len(value)):])
		case unix.RTA_OIF:
			r.Links = append(r.Links, int(nlmsg.U32(value)))
		case unix.RTA_MULTIPATH:
			return r.parseHops(value)
		case rtaNexthop:
			r.nexthop = true
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	var dstErr, srcErr error
	r.Dst, dstErr = prefixOf(r.Family, dst, msg[1])
	r.Src, srcErr = prefixOf(r.Family, src, msg[2])
	return r, errors.Join(dstErr, srcErr)
}

// parseHops reads RTA_MULTIPATH, a list of struct rtnexthop.
func (r *Route) parseHops(b []byte) error {
	for len(b) >= unix.SizeofRtNexthop {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtNexthop || size > len(b) {
			return fmt.Errorf("next hop of %d bytes in %d", size, len(b))
		}
		h := Hop{int(int32(nlmsg.U32(b[4:]))), b[2]&unix.RTNH_F_DEAD != 0, append([]byte{}, b[:size]...)}
		h.msg[2] &= unix.RTNH_F_ONLINK // the other flags describe the state of its link
		h.msg = append(h.msg, make([]byte, (4-size%4)%4)...)
		r.Links, r.Hops = append(r.Links, h.Link), append(r.Hops, h)
		b = b[min(len(b), (size+3)&^3):]
	}
	return nil
}

// DeleteRequest makes a request to delete the route.
func (r Route) DeleteRequest() string { return r.Request(r.Hops) }

// Request makes a message with the attributes that identify the route, and the given ones
// of its next hops if it has several.
func (r Route) Request(hops []Hop) string {
	out := append([]byte{}, r.msg[:unix.SizeofRtMsg]...)
	clear(out[8:]) // flags, which describe the state of its links
	// The message was read before, so its attributes are whole.
	_ = nlmsg.Attrs(r.msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) error {
		if !deleteBy[typ] || r.nexthop && nextHop[typ] {
			return nil
		}
		if typ == unix.RTA_MULTIPATH {
			value = nil
			for _, h := range hops {
				value = append(value, h.msg...)
			}
		}
		out = nlmsg.Append(out, typ, value)
		return nil
	})
	return string(out)
}

// GoesWithAnyLink reports whether the kernel deletes the route with any of its
// links: of an IPv6 route, and of next hops that are objects, it takes away no
// more than those whose link goes.
func (r Route) GoesWithAnyLink() bool { return r.Family == unix.AF_INET && !r.nexthop }

// HasRoute reports whether the route that a request deletes exists.
func (c *Conn) HasRoute(ctx context.Context, request string) (there bool, err error) {
	err = c.Routes(ctx, request[0], func() { there = false }, func(r Route) { // request[0]: its family
		there = there || r.DeleteRequest() == request
	})
	return there, err
}

// AppendRoute adds a route behind those of the same destination and metric; one
// that already exists is success.
func (c *Conn) AppendRoute(request string) error {
	err := c.change(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, []byte(request))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// DeleteRoute deletes a route; already gone is success. The routes through a next hop object
// go with it, and its number is invalid then.
func (c *Conn) DeleteRoute(request string) error {
	err := c.change(unix.RTM_DELROUTE, 0, []byte(request))
	noNexthop := errors.Is(err, unix.EINVAL) && strings.Contains(err.Error(), "Nexthop id does not exist")
	if nlmsg.Gone(err) || errors.Is(err, unix.ESRCH) || noNexthop {
		return nil
	}
	return err
}

// prefixOf makes a prefix of an address as a message has it; none is the
// default route's.
func prefixOf(family uint8, addr []byte, bits uint8) (netip.Prefix, error) {
	all := netip.IPv4Unspecified()
	if family == unix.AF_INET6 {
		all = netip.IPv6Unspecified()
	}
	if addr != nil {
		var ok bool
		if all, ok = netip.AddrFromSlice(addr); !ok {
			return netip.Prefix{}, fmt.Errorf("address of %d bytes", len(addr))
		}
	}
	return netip.PrefixFrom(all, int(bits)), nil
}
