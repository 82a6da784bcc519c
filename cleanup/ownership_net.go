// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// RouteRule describes routes that lead through no owned link. Every field but
// Link and Protocol has to be set; the zero value is an error.
type RouteRule struct {
	// Table is the number of the routing table.
	Table uint32 `json:"table"`

	// Type is the type of route, as ip-route(8) calls it: "unicast", "local",
	// "blackhole", "unreachable", "prohibit" or "throw".
	Type string `json:"type"`

	// Dst is the destination: "default", "host" for any single address, or a
	// prefix such as "10.0.0.0/8". The first two hold for IPv4 and IPv6.
	Dst string `json:"dst"`

	// Link is the name of the one link that the route leads through; empty for
	// a route through none, or through lo, as IPv6 has it.
	Link string `json:"link,omitempty"`

	// Protocol is the number of who made the route (RTPROT_KERNEL is 2); 0 is
	// anybody. In the tables main, default and local, where everybody's routes
	// are, it has to be set, and the type to be one that forwards nothing.
	Protocol uint8 `json:"protocol,omitempty"`
}

// PolicyRule describes rules of policy routing that select packets by their
// mark alone and send them to one table. Every field has to be set.
type PolicyRule struct {
	Mark  Mark   `json:"mark"`
	Table uint32 `json:"table"`
}

// Mark is a packet mark and the bits of it that count.
type Mark struct {
	Value uint32 `json:"value"`
	Mask  uint32 `json:"mask"`
}

// String returns value and mask as ip-rule(8) writes them, "0x200/0xf00".
func (m Mark) String() string { return fmt.Sprintf("0x%x/0x%x", m.Value, m.Mask) }

// XFRMRule describes IPsec policies and states by their mark. Every field has to
// be set.
type XFRMRule struct {
	// Mark is what the mark has to be, in the bits of its mask.
	Mark Mark `json:"mark"`

	// Masks are the masks that the agent writes; all of them hold that of Mark.
	// A mark with another mask is not owned, whatever its value.
	Masks []uint32 `json:"masks"`
}

func (r XFRMRule) holds(m Mark) bool {
	return slices.Contains(r.Masks, m.Mask) && m.Value&r.Mark.Mask == r.Mark.Value
}

func (r XFRMRule) validate() error {
	if err := r.Mark.validate(); err != nil {
		return fmt.Errorf("cleanup: ownership: xfrm: %w", err)
	}
	if len(r.Masks) == 0 {
		return fmt.Errorf("cleanup: ownership: xfrm: mark %s: want the masks that are written", r.Mark)
	}
	for _, mask := range r.Masks {
		if mask&r.Mark.Mask != r.Mark.Mask {
			return fmt.Errorf("cleanup: ownership: xfrm: mark %s: mask 0x%x does not hold that of the mark", r.Mark, mask)
		}
	}
	return nil
}

func (m Mark) validate() error {
	switch {
	case m.Mask == 0 || m.Value == 0:
		return fmt.Errorf("mark %s: want a value and a mask other than 0: it would hold for unmarked packets", m)
	case m.Value&^m.Mask != 0:
		return fmt.Errorf("mark %s: the value has bits outside of the mask", m)
	}
	return nil
}

// The routing tables that everybody uses (linux/rtnetlink.h).
const (
	tableDefault = 253
	tableMain    = 254
	tableLocal   = 255
)

// routeTypes are the types of routes (linux/rtnetlink.h, RTN_*); those from
// blackhole to throw forward nothing.
var routeTypes = [...]string{
	0: "unspec", 1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast",
	6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw",
}

// protoKernel stands for the kernel as who made a route (RTPROT_KERNEL).
const protoKernel = 2

const (
	typeUnicast   = 1
	typeLocal     = 2
	typeBlackhole = 6
	typeThrow     = 9
)

// routeMatcher is a RouteRule that was checked.
type routeMatcher struct {
	RouteRule
	typ    uint8
	prefix netip.Prefix // valid where Dst is one
}

func (r RouteRule) compile() (routeMatcher, error) {
	m := routeMatcher{RouteRule: r}
	for typ, name := range routeTypes {
		if name == r.Type {
			m.typ = uint8(typ)
		}
	}
	rejects := m.typ >= typeBlackhole && m.typ <= typeThrow
	shared := r.Table >= tableDefault && r.Table <= tableLocal
	switch {
	case r.Table == 0 || r.Type == "" || r.Dst == "":
		return m, fmt.Errorf("cleanup: ownership: route rule %+v: want a table, a type and a destination", r)
	case !rejects && m.typ != typeUnicast && m.typ != typeLocal:
		return m, fmt.Errorf("cleanup: ownership: route rule %+v: type %q is unknown", r, r.Type)
	case shared && (!rejects || r.Protocol == 0):
		return m, fmt.Errorf("cleanup: ownership: route rule %+v would own other people's routes: in table %d it needs a protocol, and a type that forwards nothing", r, r.Table)
	case r.Dst == "default" || r.Dst == "host":
		return m, nil
	}
	prefix, err := netip.ParsePrefix(r.Dst)
	if err != nil {
		return m, fmt.Errorf("cleanup: ownership: route rule %+v: %w", r, err)
	}
	m.prefix = prefix.Masked()
	return m, nil
}

func (m routeMatcher) holdsDst(dst netip.Prefix) bool {
	switch m.Dst {
	case "default":
		return dst.Bits() == 0
	case "host":
		return dst.IsSingleIP()
	}
	return dst == m.prefix
}

func (p PolicyRule) validate() error {
	if p.Table == 0 {
		return fmt.Errorf("cleanup: ownership: policy rule %s: want a table", p.Mark)
	}
	if err := p.Mark.validate(); err != nil {
		return fmt.Errorf("cleanup: ownership: policy rule for table %d: %w", p.Table, err)
	}
	return nil
}

// validNetNSPattern refuses patterns that could hold for any name.
func validNetNSPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("cleanup: ownership: network namespace %q: %w", pattern, err)
	}
	if pattern == "" || strings.Contains(pattern, "/") || strings.ContainsAny(pattern[:1], `*?[\.`) {
		return fmt.Errorf("cleanup: ownership: network namespace %q: want a name, or a pattern that starts with a part of one", pattern)
	}
	return nil
}

// compileNet checks what is owned of routing, network namespaces and xfrm.
func (o *owned) compileNet() error {
	for _, rule := range o.Routes {
		m, err := rule.compile()
		if err != nil {
			return err
		}
		o.routes = append(o.routes, m)
	}
	for _, rule := range o.Rules {
		if err := rule.validate(); err != nil {
			return err
		}
	}
	for _, pattern := range o.NetNS {
		if err := validNetNSPattern(pattern); err != nil {
			return err
		}
	}
	for _, rule := range o.XFRM {
		if err := rule.validate(); err != nil {
			return err
		}
	}
	return nil
}
