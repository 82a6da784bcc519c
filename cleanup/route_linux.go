// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const kindRoute = "route"

// routeRef identifies a route by the request that deletes it, and nothing but
// it: the kernel compares all of it. Where it has foreign next hops, keep is the
// request that adds it with them alone.
type routeRef struct{ request, keep string }

// routeIndex is what sorting routes needs to know of the links.
type routeIndex struct {
	owned map[int]bool
	names map[int]string
}

// ownedLinks returns the links that are owned, by their index. It knows of
// programs as far as the finders of programs have seen them.
func (s *session) ownedLinks(ctx context.Context) (*routeIndex, error) {
	links, err := s.links(ctx)
	if err != nil {
		return nil, err
	}
	out := &routeIndex{map[int]bool{}, make(map[int]string, len(links))}
	for _, link := range links {
		out.names[link.index] = link.name
		if s.own.ownsLink(link.name, link.kind, s.programNames(link)) {
			out.owned[link.index] = true
		}
	}
	return out, nil
}

// findRoutes lists owned routes of all tables, and what is foreign in shared
// tables.
func findRoutes(ctx context.Context, s *session) error {
	if len(s.own.Links)+len(s.own.Routes)+len(s.own.SharedTables) == 0 {
		return nil
	}
	links, err := s.ownedLinks(ctx)
	if err != nil {
		return err
	}
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	var errs errorSet
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := sock.routes(ctx, family)
		errs.add(err)
		for _, r := range list {
			s.sortRoute(r, links)
		}
	}
	return errs.join()
}

func (s *session) sortRoute(r route, links *routeIndex) {
	if r.goesWithLink() {
		return
	}
	item := Item{Kind: kindRoute, Object: r.describe(links.names)}
	through, others := r.through(links.owned)
	switch {
	case through && !others, s.own.ownsRoute(r, links.names):
		item.ref = routeRef{request: r.deleteRequest()}
		s.found(item)
	case through:
		s.sortSharedRoute(item, r, links.owned)
	case slices.Contains(s.own.SharedTables, r.table):
		item.Detail = fmt.Sprintf("foreign, in table %d that others use, too", r.table)
		s.leave(item)
	}
}

// sortSharedRoute sorts a route through owned links and foreign ones.
func (s *session) sortSharedRoute(item Item, r route, owned map[int]bool) {
	keep, all := r.foreignHops(owned)
	switch {
	case !r.goesWithAnyLink():
		item.Detail = "its hops through foreign links; the others go with their links"
		s.leave(item)
		return
	case len(keep) == 0:
		item.Detail = "the kernel deletes it with the link of ours; the foreign links are down"
		s.leave(item)
		return
	case all:
		item.Detail = "its hops through foreign links stay"
	default:
		item.Detail = "its hops through foreign links stay, but for links that are down"
	}
	item.ref = routeRef{r.deleteRequest(), r.request(keep)}
	s.found(item)
}

// goesWithLink reports whether the kernel made the route with an address of
// the link, or for the link itself.
func (r route) goesWithLink() bool {
	if r.protocol != protoKernel {
		return false
	}
	linkLocal := r.dst.Addr().Is6() && r.dst.Addr().IsLinkLocalUnicast()
	return r.table == tableLocal || r.table == tableMain && linkLocal
}

// through reports whether a route leads through owned links, and whether it
// leads through other ones.
func (r route) through(owned map[int]bool) (ours, others bool) {
	for _, link := range r.links {
		ours = ours || owned[link]
		others = others || !owned[link]
	}
	return ours, others
}

// ownsRoute reports whether a rule describes a route.
func (o *owned) ownsRoute(r route, names map[int]string) bool {
	via := ""
	switch len(r.links) {
	case 0:
	case 1:
		via = names[r.links[0]]
	default:
		return false
	}
	for _, m := range o.routes {
		refused := m.Link == "" && via == "lo" && r.typ >= typeBlackhole
		if m.Table == r.table && m.typ == r.typ && m.holdsDst(r.dst) && !r.gateway.IsValid() &&
			(m.Protocol == 0 || m.Protocol == r.protocol) && (via == m.Link || refused) {
			return true
		}
	}
	return false
}

// describe writes a route much as ip-route(8) does, with the family visible.
func (r route) describe(names map[int]string) string {
	var b strings.Builder
	if r.typ != typeUnicast {
		b.WriteString(r.typeName() + " ")
	}
	b.WriteString(r.dst.String())
	if r.src.IsValid() && r.src.Bits() > 0 {
		b.WriteString(" from " + r.src.String())
	}
	if r.gateway.IsValid() {
		b.WriteString(" via " + r.gateway.String())
	}
	for _, link := range r.links {
		name := names[link]
		if name == "" {
			name = fmt.Sprintf("if%d", link)
		}
		b.WriteString(" dev " + name)
	}
	fmt.Fprintf(&b, " table %d", r.table)
	if r.metric != 0 {
		fmt.Fprintf(&b, " metric %d", r.metric)
	}
	return b.String()
}

func (r route) typeName() string {
	if int(r.typ) < len(routeTypes) {
		return routeTypes[r.typ]
	}
	return fmt.Sprintf("type %d", r.typ)
}

// removeRoute deletes a route. The kernel finds it by all that is known of it,
// so another one at its place is not deleted. The route that keeps the foreign
// hops is there, behind it, before it goes: no packet finds neither.
func removeRoute(ctx context.Context, s *session, item Item) error {
	ref, ok := item.ref.(routeRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	if ref.keep != "" {
		there, err := sock.hasRoute(ctx, ref.request)
		if err != nil || !there {
			return err
		}
		if err := sock.appendRoute(ref.keep); err != nil {
			return fmt.Errorf("keep its hops through foreign links: %w", err)
		}
	}
	err = sock.change(unix.RTM_DELROUTE, rawMessage(ref.request))
	if gone(err) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// hasRoute reports whether the route that a request deletes is there.
func (r *rtnl) hasRoute(ctx context.Context, request string) (bool, error) {
	list, err := r.routes(ctx, request[0]) // its family
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(r route) bool { return r.deleteRequest() == request }), nil
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
