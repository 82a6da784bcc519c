// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// RouteRule describes routes that lead through no owned link. Table, Type and Dst must be
// set; the zero value is an error.
//
// In the shared tables main, default and local, Protocol must be set, too. A protocol
// that others use as well, such as the kernel's or a routing daemon's, needs a further
// mark of the agent there: a Link of its own, or a Type that forwards nothing with a Dst
// other than "any".
type RouteRule struct {
	// Table is the number of the routing table.
	Table uint32 `json:"table"`

	// Type is the type of route, as ip-route(8) calls it: "unicast", "local",
	// "blackhole", "unreachable", "prohibit" or "throw"; or "any".
	Type string `json:"type"`

	// Dst is the destination: "default", "host" for any single address, "network" for any
	// prefix that is neither of these, a prefix such as "10.0.0.0/8", which matches
	// itself but no part of it, or "any". All but a prefix match both IPv4 and IPv6.
	Dst string `json:"dst"`

	// Link is the name of the one link that the route leads through; empty for
	// a route through none, or through lo, as IPv6 has it; or "any", also for a
	// route of several hops.
	Link string `json:"link,omitempty"`

	// Gateway is the address of the one gateway; empty for a route without one;
	// or "any", for a route with gateways or without.
	Gateway string `json:"gateway,omitempty"`

	// Protocol is the route's protocol, which identifies the program that made it
	// (RTPROT_KERNEL is 2); 0 matches any.
	Protocol uint8 `json:"protocol,omitempty"`
}

// Values that match more than one destination, link or gateway.
const (
	anything   = "any"
	anyDefault = "default"
	anyHost    = "host"
	anyNetwork = "network"
)

// addresses are a destination of routes, or an end of a rule's packets.
type addresses struct {
	text   string
	prefix netip.Prefix // valid where text is one
}

// parseAddresses takes a prefix or one of the words.
func parseAddresses(text string, words ...string) (addresses, error) {
	if slices.Contains(words, text) {
		return addresses{text: text}, nil
	}
	prefix, err := netip.ParsePrefix(text)
	return addresses{text, prefix.Masked()}, err
}

// matches reports whether a prefix is meant; one of no bits, or the zero value, stands for
// all addresses.
func (a addresses) matches(p netip.Prefix) bool {
	switch a.text {
	case anything:
		return true
	case anyDefault, "":
		return p.Bits() <= 0
	case anyHost:
		return p.IsSingleIP()
	case anyNetwork:
		return p.Bits() > 0 && !p.IsSingleIP()
	}
	return p == a.prefix
}

// The routing tables shared by all programs (linux/rtnetlink.h).
const (
	tableDefault = 253
	tableMain    = 254
	tableLocal   = 255
)

func isSharedTable(table uint32) bool { return table >= tableDefault && table <= tableLocal }

// routeTypes are the types of routes (linux/rtnetlink.h, RTN_*); those from
// blackhole to throw forward nothing.
var routeTypes = [...]string{
	0: "unspec", 1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast",
	6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw",
}

// protoKernel is the protocol of objects made by the kernel (RTPROT_KERNEL).
const protoKernel = 2

// isSharedProtocol reports whether many programs, or one that is no agent, make
// routes with a protocol: those that linux/rtnetlink.h names, and FRR's.
func isSharedProtocol(protocol uint8) bool {
	return protocol <= 18 || protocol == 42 || protocol == 99 || protocol >= 186 && protocol <= 198
}

const (
	typeUnicast   = 1
	typeLocal     = 2
	typeBlackhole = 6
	typeThrow     = 9
)

// routeMatcher is a RouteRule that was checked.
type routeMatcher struct {
	RouteRule
	typ     uint8
	dst     addresses
	gateway netip.Addr // valid where Gateway is one
}

func (r RouteRule) compile() (routeMatcher, error) {
	m := routeMatcher{RouteRule: r}
	for _, check := range []func() error{m.parseType, m.parseDst, m.parseHop, m.checkTable} {
		if err := check(); err != nil {
			return m, fmt.Errorf("cleanup: ownership: route rule %s: %w", written(r), err)
		}
	}
	return m, nil
}

func (m *routeMatcher) parseType() error {
	if m.Table == 0 || m.Type == "" || m.Dst == "" {
		return errors.New("want a table, a type and a destination")
	}
	m.typ = uint8(max(0, slices.Index(routeTypes[:], m.Type)))
	if !m.rejects() && m.typ != typeUnicast && m.typ != typeLocal && m.Type != anything {
		return fmt.Errorf("type %q is unknown", m.Type)
	}
	return nil
}

func (m *routeMatcher) parseDst() (err error) {
	m.dst, err = parseAddresses(m.Dst, anyDefault, anyHost, anyNetwork, anything)
	return err
}

// parseHop refuses values that no route has, since they would match nothing.
func (m *routeMatcher) parseHop() (err error) {
	if m.Link != "" && !isLinkName(m.Link) {
		return fmt.Errorf("%q is not the name of a link", m.Link)
	}
	if m.Gateway != "" && m.Gateway != anything {
		if m.gateway, err = netip.ParseAddr(m.Gateway); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	switch ofLink := m.Link != "" && m.Link != "lo" && m.Link != anything; {
	case m.gateway.Zone() != "":
		return fmt.Errorf("gateway %s: want an address without a zone", m.Gateway)
	case m.rejects() && (ofLink || m.gateway.IsValid()):
		return fmt.Errorf("a route of type %s leads through no link or gateway", m.Type)
	case m.gateway.Is4() && m.dst.prefix.Addr().Is6():
		return errors.New("no IPv6 route has an IPv4 gateway")
	}
	return nil
}

// checkTable refuses rules that would own routes of others.
func (m *routeMatcher) checkTable() error {
	shared := isSharedProtocol(m.Protocol)
	ownLink := m.Link != "" && m.Link != anything && !isCard(m.Link)
	switch {
	case !isSharedTable(m.Table) || !shared:
		return nil
	case m.Protocol == 0:
		return fmt.Errorf("it would match routes of other owners: in table %d it needs a protocol", m.Table)
	case ownLink || m.rejects() && m.Dst != anything && m.Dst != anyNetwork:
		return nil
	}
	return fmt.Errorf("it would match routes of other owners: in table %d a protocol such as %d needs a link that is not the node's, or a type that forwards nothing and a destination",
		m.Table, m.Protocol)
}

// rejects reports whether the type forwards nothing.
func (m *routeMatcher) rejects() bool { return m.typ >= typeBlackhole && m.typ <= typeThrow }

// route is a route as ip-route(8) shows it.
type route struct {
	// Table, Type and Protocol are as in [RouteRule].
	Table    uint32
	Type     string
	Protocol uint8

	// Dst is the destination; of no bits for the default route.
	Dst netip.Prefix

	// Links are the names of the links of its hops; Gateway is that of a route
	// with one hop.
	Links   []string
	Gateway netip.Addr
}

// ownsRoute reports whether a rule describes a route.
func (o *owned) ownsRoute(r route) bool {
	return slices.ContainsFunc(o.routes, func(m routeMatcher) bool {
		return m.Table == r.Table && (m.Type == anything || m.Type == r.Type) && m.dst.matches(r.Dst) &&
			(m.Protocol == 0 || m.Protocol == r.Protocol) && m.leadsThrough(r)
	})
}

// leadsThrough reports whether a route has the link and the gateway of the rule.
func (m *routeMatcher) leadsThrough(r route) bool {
	if len(r.Links) > 1 {
		return m.Link == anything && m.Gateway == anything
	}
	link := strings.Join(r.Links, "")
	refused := m.Link == "" && link == "lo" && slices.Index(routeTypes[:], r.Type) >= typeBlackhole
	return (m.Link == anything || m.Link == link || refused) && (m.Gateway == anything || m.gateway == r.Gateway)
}

// isLinkName reports whether a link can have the name (dev_valid_name of Linux).
func isLinkName(name string) bool {
	return len(name) < 16 && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\n\v\f\r")
}

// isCard reports whether a name is one that the kernel or udev gives to network
// cards (systemd.net-naming-scheme(7)), that of a VLAN, bond or bridge of cards,
// or loopback's.
func isCard(name string) bool {
	return regexp.MustCompile(`^(lo|((eth|wlan|wwan|bond|team|br|ib|usb|vlan)\d|(en|wl|ww|ib|sl)[abcdiopPsuvx])[\w.]*)$`).MatchString(name)
}

// PolicyRule describes rules of policy routing that send packets to one table. Table must
// be set, and one of Mark, From, To and Priority. A rule that selects by more or by fewer
// attributes than given is not owned.
//
// For the shared tables main, default and local, Mark must be set, or Priority with one
// of From and To.
type PolicyRule struct {
	// Mark is the mark of the packets; the zero value matches a rule that does not look
	// at marks.
	Mark Mark `json:"mark,omitzero"`

	// Not is set for a rule that selects all other packets ("not" of ip-rule(8)).
	Not bool `json:"not,omitempty"`

	// From and To are the prefix of the source and of the destination, "host"
	// for any single address, or "network" for any other prefix; empty for a rule
	// that does not look at them.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`

	// Priority is the rule's priority ("pref" of ip-rule(8)); 0 matches any.
	Priority uint32 `json:"priority,omitempty"`

	// Table is the number of the table that it leads to.
	Table uint32 `json:"table"`

	// Protocol is the rule's protocol, which identifies the program that made it
	// (RTPROT_KERNEL is 2); 0 matches any.
	Protocol uint8 `json:"protocol,omitempty"`
}

// diverted returns the mark of the agent whose packets a rule sends to another table than
// the agent does. Packets that have other bits set too do not count: all marks with bits in
// common would.
func (o *owned) diverted(r rule) (mark Mark, diverts bool) {
	for _, own := range o.Rules {
		if own.Mark.Value == 0 || own.Not || r.Not || r.Mark.Value == 0 || own.Mark.Value&r.Mark.Mask != r.Mark.Value {
			continue
		}
		if own.Table == r.Table {
			return Mark{}, false
		}
		mark, diverts = own.Mark, r.Table != 0
	}
	return mark, diverts
}

// policyMatcher is a PolicyRule that was checked.
type policyMatcher struct {
	PolicyRule
	from, to addresses
}

func (p PolicyRule) compile() (policyMatcher, error) {
	m := policyMatcher{PolicyRule: p}
	if p.Table == 0 {
		return m, fmt.Errorf("cleanup: ownership: policy rule %s: want a table", written(p))
	}
	if err := errors.Join(m.parseEnds(), m.checkSelector()); err != nil {
		return m, fmt.Errorf("cleanup: ownership: policy rule for table %d: %w", p.Table, err)
	}
	return m, nil
}

func (m *policyMatcher) parseEnds() (err error) {
	for _, end := range []struct {
		name, given string
		parsed      *addresses
	}{{"from", m.From, &m.from}, {"to", m.To, &m.to}} {
		*end.parsed, err = parseAddresses(end.given, "", anyHost, anyNetwork)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", end.name, err)
		case end.parsed.prefix.Bits() == 0:
			return fmt.Errorf("%s %s: it would own rules for every packet", end.name, end.given)
		}
	}
	if from, to := m.from.prefix, m.to.prefix; from.IsValid() && to.IsValid() && from.Addr().Is4() != to.Addr().Is4() {
		return fmt.Errorf("from %s to %s: no packet is of both families", m.From, m.To)
	}
	return nil
}

func (m *policyMatcher) checkSelector() error {
	marked, prefixed := m.Mark != Mark{}, m.From != "" || m.To != ""
	switch {
	case m.Not && !marked && !prefixed:
		return errors.New("not: want a mark or a prefix beside it")
	case isSharedTable(m.Table) && !marked && (!prefixed || m.Priority == 0):
		return fmt.Errorf("it would match rules of other owners: to table %d it needs a mark, or a priority and a prefix", m.Table)
	case !marked && (prefixed || m.Priority != 0):
		return nil
	}
	return m.Mark.validate()
}

// rule is a rule of policy routing as ip-rule(8) shows it.
type rule struct {
	Priority uint32
	Mark     Mark
	Not      bool
	From, To netip.Prefix // the zero value, or of no bits, where it does not look at them
	Table    uint32       // that it leads to; 0: it does something else

	Protocol uint8 // as of a route

	// More is set if it selects by other attributes, too, such as an interface.
	More bool
}

// ownsRule reports whether a PolicyRule describes a rule.
func (o *owned) ownsRule(r rule) bool {
	return slices.ContainsFunc(o.rules, func(m policyMatcher) bool {
		if m.Table != r.Table || m.Priority != 0 && m.Priority != r.Priority || m.Protocol != 0 && m.Protocol != r.Protocol {
			return false
		}
		return !r.More && m.Mark == r.Mark && m.Not == r.Not && m.from.matches(r.From) && m.to.matches(r.To)
	})
}

// movedLocal reports whether a rule is the kernel's for the table local, which the
// agent has moved.
func (o *owned) movedLocal(r rule) bool {
	kernels := rule{Priority: o.LocalRule, Table: tableLocal, Protocol: protoKernel, From: r.From, To: r.To}
	return o.LocalRule != 0 && r == kernels && (addresses{}).matches(r.From) && (addresses{}).matches(r.To)
}
