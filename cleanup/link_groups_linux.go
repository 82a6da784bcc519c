// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/nlread"
)

// The kernel deletes the links of a group in one go and waits for its readers once, not
// once for each link. It has the RTNL lock meanwhile, so the groups are small: one
// deletion takes about groupTime, and other users wait for the lock for about two thirds
// of that. A link with tcx costs a further wait, so those have groups of their own.
const (
	minGroup   = 8 // fewer links than this go one by one
	maxGroup   = 192
	firstGroup = 32
	slowGroup  = 2 // the first group of links with tcx
	groupTime  = 65 * time.Millisecond
)

// removeLinks deletes links in groups. One by one go few links, devices without a kind
// (the kernel refuses a whole group for one of them), links that are not the listed ones,
// and those of a group that was refused.
func removeLinks(ctx context.Context, r *removal, objects []linkObject, done func(i int, err error)) {
	var single []int
	if len(objects) >= minGroup {
		fast, slow, rest := r.groupable(ctx, objects)
		single = append(rest, r.removeInGroups(ctx, fast, firstGroup, done)...)
		single = append(single, r.removeInGroups(ctx, slow, slowGroup, done)...)
	} else {
		single = indexes(objects)
	}
	for _, i := range single {
		if ctx.Err() != nil {
			break
		}
		done(i, objects[i].remove(ctx, r))
	}
}

func indexes[T any](list []T) []int {
	out := make([]int, len(list))
	for i := range list {
		out[i] = i
	}
	return out
}

// member is a link of a group, as it is now.
type member struct {
	rtnl.Link
	i int // of the object
}

// groupable looks at all links and returns those that may go in groups, and the
// indexes of the others.
func (r *removal) groupable(ctx context.Context, objects []linkObject) (fast, slow []member, rest []int) {
	list, err := r.links.all(ctx)
	if err != nil {
		return nil, nil, indexes(objects)
	}
	now := make(map[rtnl.LinkID]rtnl.Link, len(list))
	for _, link := range list {
		now[link.LinkID] = link
	}
	for i, object := range objects {
		link, ok := now[object.LinkID]
		switch {
		case !ok || link.Kind == "":
			rest = append(rest, i)
		case r.slowLinks[link.Index]:
			slow = append(slow, member{link, i})
		default:
			fast = append(fast, member{link, i})
		}
	}
	// The youngest first: the kernel has lists of all clsact qdiscs, with the
	// youngest in front, in which it looks for each one that goes.
	sort.Slice(fast, func(i, j int) bool { return fast[i].Index > fast[j].Index })
	return fast, slow, rest
}

// removeInGroups returns the indexes of the links that it could not remove.
func (r *removal) removeInGroups(ctx context.Context, members []member, size int, done func(i int, err error)) (rest []int) {
	for len(members) > 0 && ctx.Err() == nil {
		group := members[:min(size, len(members))]
		members = members[len(group):]
		took, err := r.removeGroup(group)
		if err != nil {
			size = max(size/2, 1)
			for _, m := range group {
				rest = append(rest, m.i)
			}
			continue
		}
		size = nextGroupSize(size, len(group), took)
		for _, m := range group {
			done(m.i, linkObject{m.LinkID}.verifyDeleted(&r.kernel))
		}
	}
	return rest
}

// nextGroupSize aims at groupTime for one group, and grows slowly: the cost of a link
// depends on the programs attached to it.
func nextGroupSize(size, deleted int, took time.Duration) int {
	if deleted < size {
		return size
	}
	fits := int(float64(deleted) * float64(groupTime) / float64(max(took, 1)))
	return max(1, min(fits, 4*size, maxGroup))
}

// removeGroup puts links into a group that no other link has, and deletes the
// group. Where that fails they are in their own groups again. It returns how
// long the deletion took.
func (r *removal) removeGroup(members []member) (time.Duration, error) {
	group := freeGroup(r.links.list.value)
	for i, m := range members {
		if err := r.kernel.SetGroup(m.Index, group); err != nil && !nlread.Gone(err) {
			return 0, errors.Join(err, restoreGroups(&r.kernel, members[:i]))
		}
	}
	start := time.Now()
	if err := r.kernel.DeleteGroup(group); err != nil && !nlread.Gone(err) {
		return 0, errors.Join(err, restoreGroups(&r.kernel, members))
	}
	return time.Since(start), nil
}

// freeGroup returns a group that no link has; 0 is every link's first group.
func freeGroup(list []rtnl.Link) uint32 {
	used := map[uint32]bool{0: true}
	for _, link := range list {
		used[link.Group] = true
	}
	for {
		// Negative numbers stand for "no group" in the kernel.
		if group := rand.Uint32() >> 1; !used[group] {
			return group
		}
	}
}

func restoreGroups(kernel *rtnl.Conn, members []member) error {
	var errs failure.Set
	for _, m := range members {
		if err := kernel.SetGroup(m.Index, m.Group); err != nil && !nlread.Gone(err) {
			errs.Add(fmt.Errorf("restore the group of link %s: %w", m.Name, err))
		}
	}
	return errs.Join()
}
