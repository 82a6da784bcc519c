// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The kernel deletes the links of a group in one go and waits for its readers
// once, not once for each link. It holds the RTNL lock meanwhile, so the groups
// are small: as large as keeps one deletion near groupTime, of which somebody
// else waits for the lock about two thirds. For a link with tcx it waits once
// more, each time, so those have groups of their own.
const (
	minGroup   = 8 // fewer links than this go one by one
	maxGroup   = 192
	firstGroup = 32
	slowGroup  = 2 // the first group of links with tcx
	groupTime  = 65 * time.Millisecond
)

// removeLinks deletes links in groups, and one by one what is no group's
// matter: few links, devices without a kind (the kernel refuses a whole group
// for one of them), links that are not what was listed, refused groups.
func removeLinks(ctx context.Context, s *session, items []Item, done doneFunc) {
	single := items
	if len(items) >= minGroup {
		fast, slow, rest := s.groupable(ctx, items)
		single = append(rest, s.removeInGroups(ctx, fast, firstGroup, done)...)
		single = append(single, s.removeInGroups(ctx, slow, slowGroup, done)...)
	}
	each(func(_ context.Context, s *session, item Item) error {
		ref, ok := item.ref.(linkRef)
		if !ok {
			return fmt.Errorf("identity of type %T", item.ref)
		}
		return removeLink(s, ref)
	})(ctx, s, single, done)
}

// groupItem is an item with its link as it is now.
type groupItem struct {
	Item
	linkInfo
}

// groupable looks at all links again and returns those that may go in groups.
func (s *session) groupable(ctx context.Context, items []Item) (fast, slow []groupItem, rest []Item) {
	links, err := s.links(ctx)
	if err != nil {
		return nil, nil, items
	}
	now := make(map[linkRef]linkInfo, len(links))
	for _, link := range links {
		now[link.ref()] = link
	}
	for _, item := range items {
		ref, _ := item.ref.(linkRef)
		link, ok := now[ref]
		switch {
		case !ok || link.kind == "":
			rest = append(rest, item)
		case s.slow[link.index]:
			slow = append(slow, groupItem{item, link})
		default:
			fast = append(fast, groupItem{item, link})
		}
	}
	// The youngest first: the kernel has lists of all clsact qdiscs, with the
	// youngest in front, in which it looks for each one that goes.
	slices.SortStableFunc(fast, func(a, b groupItem) int { return cmp.Compare(b.index, a.index) })
	return fast, slow, rest
}

// slowLinks returns the links with programs on tcx among the items.
func slowLinks(items []Item) map[int]bool {
	out := map[int]bool{}
	for _, item := range items {
		if at, ok := item.ref.(hookRef); ok {
			out[at.link] = true
		}
	}
	return out
}

// withoutGone deals with the items whose link is gone by now, and returns the
// others.
func (s *session) withoutGone(ctx context.Context, items []Item, done doneFunc) (rest []Item) {
	if s.remain == nil {
		sock, err := s.netlink()
		if err != nil {
			return items
		}
		links, err := sock.links(ctx)
		if err != nil {
			return items
		}
		s.remain = make(map[int]bool, len(links))
		for _, link := range links {
			s.remain[link.index] = true
		}
	}
	for _, item := range items {
		if at, ok := item.ref.(onLink); ok && !s.remain[at.onLink()] {
			done(item, nil)
		} else {
			rest = append(rest, item)
		}
	}
	return rest
}

// removeInGroups returns the items that it could not remove.
func (s *session) removeInGroups(ctx context.Context, items []groupItem, size int, done doneFunc) (rest []Item) {
	for len(items) > 0 && ctx.Err() == nil {
		chunk := items[:min(size, len(items))]
		items = items[len(chunk):]
		took, err := s.removeGroup(chunk)
		if err != nil {
			size = max(size/2, 1)
			rest = appendItems(rest, chunk)
			continue
		}
		size = nextGroupSize(size, len(chunk), took)
		for _, item := range chunk {
			done(item.Item, s.verifyDeleted(item.linkInfo))
		}
	}
	if ctx.Err() != nil {
		return rest
	}
	return appendItems(rest, items)
}

// verifyDeleted returns an error for a link that the kernel said to have
// deleted and keeps: the fallback device of a tunnel module (tunl0, sit0), under
// whatever name. A veth is never one.
func (s *session) verifyDeleted(link linkInfo) error {
	if link.kind == "veth" {
		return nil
	}
	now, err := s.sock.link(link.index)
	if err != nil || now.ref() != link.ref() {
		return nil
	}
	return fmt.Errorf("the kernel keeps it: it is a fallback device that goes with its module (%s)", link.kind)
}

// nextGroupSize aims at groupTime for one group, and grows slowly: what a link
// costs depends on what is attached to it.
func nextGroupSize(size, deleted int, took time.Duration) int {
	if deleted < size {
		return size
	}
	fits := int(float64(deleted) * float64(groupTime) / float64(max(took, 1)))
	return max(1, min(fits, 4*size, maxGroup))
}

func appendItems(to []Item, items []groupItem) []Item {
	for _, item := range items {
		to = append(to, item.Item)
	}
	return to
}

// removeGroup puts links into a group that no other link has, and deletes the
// group. Where that fails they are in their own groups again. It returns how
// long the deletion took.
func (s *session) removeGroup(items []groupItem) (time.Duration, error) {
	sock, err := s.netlink()
	if err != nil {
		return 0, err
	}
	group := s.freeGroup()
	for i, item := range items {
		if err := sock.setGroup(item.index, group); err != nil && !gone(err) {
			return 0, errors.Join(err, sock.restoreGroups(items[:i]))
		}
	}
	start := time.Now()
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	err = sock.change(unix.RTM_DELLINK, msg, nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(group)))
	if err != nil && !gone(err) {
		return 0, errors.Join(err, sock.restoreGroups(items))
	}
	return time.Since(start), nil
}

// freeGroup returns a group that no link has; 0 is every link's first group.
func (s *session) freeGroup() uint32 {
	used := map[uint32]bool{0: true}
	for _, link := range s.linkList {
		used[link.group] = true
	}
	for {
		// Negative numbers stand for "no group" in the kernel.
		if group := rand.Uint32() >> 1; !used[group] {
			return group
		}
	}
}

func (r *rtnl) setGroup(index int, group uint32) error {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	return r.change(unix.RTM_SETLINK, msg, nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(group)))
}

func (r *rtnl) restoreGroups(items []groupItem) error {
	var errs errorSet
	for _, item := range items {
		if err := r.setGroup(item.index, item.group); err != nil && !gone(err) {
			errs.add(fmt.Errorf("restore the group of link %s: %w", item.name, err))
		}
	}
	return errs.join()
}
