// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// filterObject is a tc filter.
type filterObject struct{ rtnl.FilterID }

func (f filterObject) onLink() int { return int(f.Ifindex) }

// clsactObject is a link's clsact qdisc.
type clsactObject struct{ link int }

func (c clsactObject) onLink() int { return c.link }

// filtered is a link's clsact or ingress qdisc with its filters.
type filtered struct {
	rtnl.Qdisc
	link    rtnl.Link
	owned   []rtnl.Filter
	foreign []string // filters that are not owned, for people
}

// filterSearch lists the filters of all links that have a qdisc for them.
type filterSearch struct {
	*search
	blocks map[rtnl.FilterID]bool // filters of shared blocks that were found
}

// findFilters lists owned filters, and the clsact qdiscs that have owned
// filters and nothing else.
func findFilters(ctx context.Context, s *search) error {
	qdiscs, err := s.kernel.Qdiscs(ctx)
	if err != nil {
		return err
	}
	list, err := s.links.all(ctx)
	if err != nil {
		return err
	}
	f := &filterSearch{s, map[rtnl.FilterID]bool{}}
	var looked []*filtered
	var errs failure.Set
	for _, l := range list {
		if qdisc, has := qdiscs[l.Index]; has && ctx.Err() == nil {
			q := &filtered{Qdisc: qdisc, link: l}
			errs.Add(f.look(ctx, q))
			f.foundFilters(q)
			looked = append(looked, q)
		}
	}
	for _, q := range looked {
		f.foundClsact(q)
	}
	return errs.Join()
}

func (s *filterSearch) look(ctx context.Context, q *filtered) error {
	var errs failure.Set
	for _, parent := range q.Parents() {
		list, err := s.kernel.Filters(ctx, int32(q.link.Index), parent)
		if err != nil {
			errs.Add(fmt.Errorf("list filters: %w", err))
			q.foreign = append(q.foreign, "filters that could not be listed")
		}
		errs.Add(s.sort(q, list))
	}
	for _, f := range q.owned {
		s.links.carries(q.link.Index, f.Name, s.programs.name(f.Program))
	}
	return errs.Join()
}

// sort divides the filters at one parent into owned and foreign ones. The entry for a
// priority and protocol is foreign unless one of its filters is owned.
func (s *filterSearch) sort(q *filtered, list []rtnl.Filter) error {
	var errs failure.Set
	ours := map[rtnl.FilterID]bool{}
	for _, f := range list {
		owned, err := s.owns(f, q.link.Name)
		errs.Add(err)
		if owned {
			q.owned = append(q.owned, f)
			ours[f.Head()] = true
		} else if f.Handle != 0 {
			q.foreign = append(q.foreign, describeFilter(f))
		}
	}
	for _, f := range list {
		if f.Handle == 0 && !ours[f.Head()] {
			q.foreign = append(q.foreign, describeFilter(f))
		}
	}
	return errs.Join()
}

func (s *filterSearch) owns(f rtnl.Filter, link string) (bool, error) {
	if f.Kind != "bpf" || f.Handle == 0 {
		return false, nil
	}
	if f.Ifindex == rtnl.SharedBlock {
		link = "" // it is on several
	}
	if isFilter(f.Name, link, s.own.Filters) {
		return true, nil
	}
	return s.programs.owns(f.Program)
}

func describeFilter(f rtnl.Filter) string {
	name := f.Name
	if name == "" {
		name = "filter"
	}
	return fmt.Sprintf("%s %s pref %d", f.Kind, name, f.Preference())
}

func (s *filterSearch) foundFilters(q *filtered) {
	for _, f := range q.owned {
		with := []string{nameOf(kindClsact, q.link.Name), nameOf(kindLink, q.link.Name)}
		if f.Ifindex == rtnl.SharedBlock {
			with = nil
			if s.blocks[f.FilterID] {
				continue // the block was seen at another link
			}
			s.blocks[f.FilterID] = true
		}
		name := f.Name
		if name == "" {
			name = s.programs.name(f.Program)
		}
		s.found(Item{
			Kind:   kindFilter,
			Object: filterWhere(f, q.link.Name) + " " + name,
			Detail: fmt.Sprintf("pref %d handle 0x%x program %d", f.Preference(), f.Handle, f.Program),
			object: filterObject{f.FilterID},
		}, with...)
	}
}

func filterWhere(f rtnl.Filter, link string) string {
	switch {
	case f.Ifindex == rtnl.SharedBlock:
		return fmt.Sprintf("block %d", f.Parent)
	case f.Parent == rtnl.Egress:
		return link + " egress"
	}
	return link + " ingress"
}

func (s *filterSearch) foundClsact(q *filtered) {
	item := Item{Kind: kindClsact, Object: q.link.Name, object: clsactObject{q.link.Index}}
	switch {
	case q.Kind != "clsact" || len(q.owned) == 0:
	case q.Shared:
		s.leave(item, "its filters are in a shared block")
	case len(q.foreign) > 0:
		s.leave(item, "foreign filter on it: "+q.foreign[0])
	default:
		s.found(item, nameOf(kindLink, q.link.Name))
	}
}

// remove looks and deletes. The kernel has no request that does both at once.
func (f filterObject) remove(ctx context.Context, r *removal) error {
	list, err := r.kernel.Filters(ctx, f.Ifindex, f.Parent)
	if err != nil {
		return err
	}
	for _, now := range list {
		if now.Slot() != f.Slot() {
			continue
		}
		if now.FilterID != f.FilterID || now.Kind != "bpf" {
			return fmt.Errorf("it is program %d now: %w", now.Program, failure.ErrReplaced)
		}
		return r.kernel.DeleteFilter(f.FilterID)
	}
	return nil
}

// remove deletes the qdisc if no filter is on it.
func (c clsactObject) remove(ctx context.Context, r *removal) error {
	for _, parent := range []uint32{rtnl.Ingress, rtnl.Egress} {
		list, err := r.kernel.Filters(ctx, int32(c.link), parent)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			return fmt.Errorf("%s is on it; left as it is", describeFilter(list[len(list)-1]))
		}
	}
	return r.kernel.DeleteClsact(ctx, c.link)
}
