// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
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

// rtaNexthop is RTA_NH_ID, which no library names (linux/rtnetlink.h).
const rtaNexthop = 30

// deleteBy are the attributes by which a route is deleted; the others describe its age, or the
// answer to a look-up. True are those that a next hop object stands for: a request has one or
// the other.
var deleteBy = map[uint16]bool{
	unix.RTA_DST: false, unix.RTA_SRC: false, unix.RTA_PRIORITY: false, unix.RTA_PREFSRC: false, unix.RTA_METRICS: false,
	unix.RTA_TABLE: false, unix.RTA_PREF: false, rtaNexthop: false,
	unix.RTA_OIF: true, unix.RTA_GATEWAY: true, unix.RTA_MULTIPATH: true, unix.RTA_VIA: true, unix.RTA_ENCAP_TYPE: true, unix.RTA_ENCAP: true,
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
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	return nil
}

// familyHeader makes a header of a route or rule, with nothing but a family.
func familyHeader(family uint8) []byte {
	return (&nl.RtMsg{RtMsg: unix.RtMsg{Family: family}}).Serialize()
}

func parseRoute(msg []byte) (r Route, err error) {
	if len(msg) < unix.SizeofRtMsg {
		return r, fmt.Errorf("route message of %d bytes is too short", len(msg))
	}
	header := nl.DeserializeRtMsg(msg)
	r.Family, r.Table, r.Protocol, r.Type = header.Family, uint32(header.Table), header.Protocol, header.Type
	r.msg, r.cloned = msg, header.Flags&unix.RTM_F_CLONED != 0
	var dst, src []byte
	var hopErr error
	err = nlread.Attributes(msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) {
		switch typ {
		case unix.RTA_DST:
			dst = value
		case unix.RTA_SRC:
			src = value
		case unix.RTA_TABLE:
			r.Table = nlread.U32(value)
		case unix.RTA_PRIORITY:
			r.Metric = nlread.U32(value)
		case unix.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_VIA: // of another family than the route, which is before the address
			r.Gateway, _ = netip.AddrFromSlice(value[min(2, len(value)):])
		case unix.RTA_OIF:
			r.Links = append(r.Links, int(nlread.U32(value)))
		case unix.RTA_MULTIPATH:
			hopErr = r.parseHops(value)
		case rtaNexthop:
			r.nexthop = true
		}
	})
	var dstErr, srcErr error
	r.Dst, dstErr = prefixOf(r.Family, dst, header.Dst_len)
	r.Src, srcErr = prefixOf(r.Family, src, header.Src_len)
	return r, errors.Join(err, hopErr, dstErr, srcErr)
}

// parseHops reads RTA_MULTIPATH, a list of struct rtnexthop.
func (r *Route) parseHops(b []byte) error {
	for len(b) >= unix.SizeofRtNexthop {
		hop := nl.DeserializeRtNexthop(b)
		size := int(hop.RtNexthop.Len)
		if size < unix.SizeofRtNexthop || size > len(b) {
			return fmt.Errorf("next hop of %d bytes in %d", size, len(b))
		}
		h := Hop{int(hop.Ifindex), hop.Flags&unix.RTNH_F_DEAD != 0, slices.Clone(b[:size])}
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
	header := *nl.DeserializeRtMsg(r.msg)
	header.Flags = 0 // they describe the state of its links
	out := string(header.Serialize())
	// The message was read before, so its attributes are whole.
	_ = nlread.Attributes(r.msg[unix.SizeofRtMsg:], func(typ uint16, value []byte) {
		if hop, known := deleteBy[typ]; !known || r.nexthop && hop {
			return
		}
		if typ == unix.RTA_MULTIPATH {
			value = nil
			for _, h := range hops {
				value = append(value, h.msg...)
			}
		}
		out += attribute(typ, value)
	})
	return out
}

// attribute encodes an attribute.
func attribute(typ uint16, value []byte) string {
	return string(nl.NewRtAttr(int(typ), value).Serialize())
}

// GoesWithAnyLink reports whether the kernel deletes the route with any of its
// links: of an IPv6 route, and of next hops that are objects, it takes away no
// more than those whose link goes.
func (r Route) GoesWithAnyLink() bool { return r.Family == unix.AF_INET && !r.nexthop }

// HasRoute reports whether the route that a request deletes exists.
func (c *Conn) HasRoute(ctx context.Context, request string) (exists bool, err error) {
	err = c.Routes(ctx, request[0], func() { exists = false }, func(r Route) { // request[0]: its family
		exists = exists || r.DeleteRequest() == request
	})
	return exists, err
}

// AppendRoute adds a route behind those of the same destination and metric; one
// that already exists is success.
func (c *Conn) AppendRoute(request string) error {
	return nlread.Except(c.change(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, []byte(request)), unix.EEXIST)
}

// DeleteRoute deletes a route; already gone is success. The routes through a next hop object
// go with it, and its number is invalid then.
func (c *Conn) DeleteRoute(request string) error {
	err := c.change(unix.RTM_DELROUTE, 0, []byte(request))
	noNexthop := errors.Is(err, unix.EINVAL) && strings.Contains(err.Error(), "Nexthop id does not exist")
	if noNexthop {
		return nil
	}
	return nlread.Except(err, unix.ENOENT, unix.ENODEV, unix.ESRCH)
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
