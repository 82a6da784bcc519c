// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// routeObject is a route. The request deletes it and nothing else, for the kernel
// compares all that is in it. Where the route has foreign next hops, rest is the
// request that adds it with these alone.
type routeObject struct{ request, rest string }

// routeSearch lists routes with the names and owners of their links.
type routeSearch struct {
	*search
	owned map[int]bool
	names map[int]string
}

// findRoutes lists owned routes of all tables, and foreign ones in shared tables.
func findRoutes(ctx context.Context, s *search) error {
	if len(s.own.links)+len(s.own.Routes)+len(s.own.SharedTables) == 0 {
		return nil
	}
	list, err := s.links.all(ctx)
	if err != nil {
		return err
	}
	names, _ := s.links.names(ctx) // of that list
	r := &routeSearch{s, map[int]bool{}, names}
	for _, l := range list {
		r.owned[l.Index] = s.ownsLink(l)
	}
	var errs failure.Set
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		begin := s.mark()
		if err := s.kernel.Routes(ctx, family, func() { s.reset(begin) }, r.sort); err != nil {
			s.reset(begin)
			errs.Add(err)
		}
	}
	return errs.Join()
}

func (s *routeSearch) sort(r rtnl.Route) {
	if goesWithLink(r) {
		return
	}
	item := Item{Kind: kindRoute, Object: describeRoute(r, s.names)}
	ours, others := through(r, s.owned)
	switch {
	case ours && !others, s.own.ownsRoute(asRoute(r, s.names)):
		item.object = routeObject{request: r.DeleteRequest()}
		s.found(item, s.linksOf(r)...)
	case ours:
		s.sortShared(item, r)
	case slices.Contains(s.own.SharedTables, r.Table):
		s.leave(item, fmt.Sprintf("foreign, in table %d that others use, too", r.Table))
	}
}

// sortShared sorts a route through owned links and foreign ones.
func (s *routeSearch) sortShared(item Item, r rtnl.Route) {
	foreign, all := foreignHops(r, s.owned)
	switch {
	case !r.GoesWithAnyLink():
		s.leave(item, "its hops through foreign links; the others go with their links")
		return
	case len(foreign) == 0:
		s.leave(item, "the kernel deletes it with the link of ours; the foreign links are down")
		return
	case all:
		item.Detail = "its hops through foreign links are kept"
	default:
		item.Detail = "its hops through foreign links are kept, but for links that are down"
	}
	item.object = routeObject{r.DeleteRequest(), r.Request(foreign)}
	s.found(item, s.linksOf(r)...)
}

// linksOf names the links with which a route goes.
func (s *routeSearch) linksOf(r rtnl.Route) (names []string) {
	for _, link := range r.Links {
		names = append(names, nameOf(kindLink, s.names[link]))
	}
	return names
}

// goesWithLink reports whether the kernel made the route with an address of
// the link, or for the link itself.
func goesWithLink(r rtnl.Route) bool {
	if r.Protocol != protoKernel {
		return false
	}
	linkLocal := r.Dst.Addr().Is6() && r.Dst.Addr().IsLinkLocalUnicast()
	return r.Table == tableLocal || r.Table == tableMain && linkLocal
}

// through reports whether a route leads through owned links, and whether it
// leads through other ones.
func through(r rtnl.Route, owned map[int]bool) (ours, others bool) {
	for _, link := range r.Links {
		ours = ours || owned[link]
		others = others || !owned[link]
	}
	return ours, others
}

// foreignHops returns the next hops that do not lead through owned links, without
// those whose link is down, which the kernel does not accept; all reports whether
// there are none of these.
func foreignHops(r rtnl.Route, owned map[int]bool) (hops []rtnl.Hop, all bool) {
	all = true
	for _, h := range r.Hops {
		switch {
		case owned[h.Link]:
		case h.Dead:
			all = false
		default:
			hops = append(hops, h)
		}
	}
	return hops, all
}

// asRoute describes a route by names. Unknown names are "".
func asRoute(r rtnl.Route, names map[int]string) route {
	out := route{Table: r.Table, Type: routeType(r.Type), Protocol: r.Protocol, Dst: r.Dst, Gateway: r.Gateway}
	for _, link := range r.Links {
		out.Links = append(out.Links, names[link])
	}
	return out
}

// describeRoute writes a route much as ip-route(8) does, with the family
// visible.
func describeRoute(r rtnl.Route, names map[int]string) string {
	var b strings.Builder
	if r.Type != typeUnicast {
		b.WriteString(routeType(r.Type) + " ")
	}
	b.WriteString(r.Dst.String())
	if r.Src.IsValid() && r.Src.Bits() > 0 {
		b.WriteString(" from " + r.Src.String())
	}
	if r.Gateway.IsValid() {
		b.WriteString(" via " + r.Gateway.String())
	}
	for _, link := range r.Links {
		name := names[link]
		if name == "" {
			name = fmt.Sprintf("if%d", link)
		}
		b.WriteString(" dev " + name)
	}
	fmt.Fprintf(&b, " table %d", r.Table)
	if r.Metric != 0 {
		fmt.Fprintf(&b, " metric %d", r.Metric)
	}
	return b.String()
}

func routeType(typ uint8) string {
	if int(typ) < len(routeTypes) {
		return routeTypes[typ]
	}
	return fmt.Sprintf("type %d", typ)
}

// remove deletes a route. The kernel finds it by all that is known of it, so
// another one of the same destination is not deleted. The route with the foreign
// hops alone is added behind it first: no packet finds neither.
func (o routeObject) remove(ctx context.Context, r *removal) error {
	if o.rest != "" {
		exists, err := r.kernel.HasRoute(ctx, o.request)
		if err != nil || !exists {
			return err
		}
		if err := r.kernel.AppendRoute(o.rest); err != nil {
			return fmt.Errorf("keep its hops through foreign links: %w", err)
		}
	}
	return r.kernel.DeleteRoute(o.request)
}
