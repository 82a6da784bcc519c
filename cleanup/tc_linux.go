// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The parents of the filters of a clsact or ingress qdisc (linux/pkt_sched.h).
const (
	handleIngress = 0xfffffff1 // the parent of both qdiscs themselves
	parentIngress = 0xfffffff2
	parentEgress  = 0xfffffff3
	parentPlain   = 0xffff0000 // of the filters of an ingress qdisc

	// magicBlock stands for the link in messages on filters of a shared block;
	// the parent is the block's index then.
	magicBlock = -1
)

// tcState is what hangs at a link's clsact or ingress qdisc.
type tcState struct {
	kind    string
	shared  bool // its filters are in a block that other links use, too
	filters []tcFilter
	foreign []string // filters that are not owned, for people
}

// tcFilter is one owned BPF filter.
type tcFilter struct {
	filterRef
	name string // of the filter
}

// filterRef identifies a tc filter by its place and the program in it.
type filterRef struct {
	link   int
	parent uint32
	chain  uint32
	info   uint32 // priority << 16 | protocol, as the kernel encodes it
	handle uint32
	prog   uint32
}

func (r filterRef) onLink() int { return r.link }

func (r filterRef) place() filterRef {
	r.prog = 0
	return r
}

type clsactRef struct{ link int }

func (r clsactRef) onLink() int { return r.link }

func (t *tcState) parents() []uint32 {
	if t.kind == "clsact" {
		return []uint32{parentIngress, parentEgress}
	}
	return []uint32{parentPlain}
}

// scanFilters looks at the filters of all links that have a qdisc for them.
func (s *session) scanFilters(ctx context.Context) error {
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	qdiscs, err := sock.qdiscs(ctx)
	if err != nil {
		return err
	}
	s.qdiscs = qdiscs
	links, err := s.links(ctx)
	if err != nil {
		return err
	}
	names := make(map[int]string, len(links))
	for _, link := range links {
		names[link.index] = link.name
	}
	var errs errorSet
	for link, state := range qdiscs {
		for _, parent := range state.parents() {
			list, err := sock.filters(ctx, link, parent)
			if err != nil {
				errs.add(fmt.Errorf("list filters: %w", err))
				state.foreign = append(state.foreign, "filters that could not be listed")
			}
			errs.add(s.sortFilters(state, names[link], list))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errs.join()
}

// sortFilters divides the filters at one parent into owned and foreign ones.
func (s *session) sortFilters(state *tcState, link string, list []rawFilter) error {
	var errs errorSet
	ours := map[filterRef]bool{}
	for _, f := range list {
		owned, err := s.ownsFilter(f, link)
		errs.add(err)
		if owned {
			state.filters = append(state.filters, tcFilter{f.filterRef, f.name})
			ours[f.head()] = true
		} else if f.handle != 0 {
			state.foreign = append(state.foreign, f.describe())
		}
	}
	for _, f := range list {
		if f.handle == 0 && !ours[f.head()] {
			state.foreign = append(state.foreign, f.describe())
		}
	}
	return errs.join()
}

// head is the place of the message that stands for a priority and protocol.
func (f rawFilter) head() filterRef {
	ref := f.place()
	ref.handle = 0
	return ref
}

func (s *session) ownsFilter(f rawFilter, link string) (bool, error) {
	if f.kind != "bpf" || f.handle == 0 {
		return false, nil
	}
	if f.link == magicBlock {
		link = "" // several have it
	}
	if isFilter(f.name, link, s.own.Filters) {
		return true, nil
	}
	return s.ownsProgram(f.prog)
}

func (f rawFilter) describe() string {
	name := f.name
	if name == "" {
		name = "filter"
	}
	return fmt.Sprintf("%s %s pref %d", f.kind, name, f.info>>16)
}

// findFilters lists owned filters, and the clsact qdiscs that hold owned
// filters and nothing else.
func findFilters(ctx context.Context, s *session) error {
	scanErr := s.scanFilters(ctx)
	links, err := s.links(ctx)
	if err != nil {
		return err // which scanning the filters met, too
	}
	for _, link := range links {
		if state := s.qdiscs[link.index]; state != nil {
			s.foundFilters(link, state)
		}
	}
	for _, link := range links {
		if state := s.qdiscs[link.index]; state != nil {
			s.foundClsact(link, state)
		}
	}
	return scanErr
}

func (s *session) foundFilters(link linkInfo, state *tcState) {
	for _, f := range state.filters {
		if f.link == magicBlock {
			if s.blocks[f.filterRef] {
				continue // the block was seen at another link
			}
			s.blocks[f.filterRef] = true
		}
		name := f.name
		if name == "" {
			name = s.programs[f.prog].name
		}
		s.found(Item{
			Kind:   kindFilter,
			Object: f.where(link.name) + " " + name,
			Detail: fmt.Sprintf("pref %d handle 0x%x program %d", f.info>>16, f.handle, f.prog),
			ref:    f.filterRef,
		})
	}
}

func (r filterRef) where(link string) string {
	switch {
	case r.link == magicBlock:
		return fmt.Sprintf("block %d", r.parent)
	case r.parent == parentEgress:
		return link + " egress"
	}
	return link + " ingress"
}

func (s *session) foundClsact(link linkInfo, state *tcState) {
	if state.kind != "clsact" || len(state.filters) == 0 {
		return
	}
	item := Item{Kind: kindClsact, Object: link.name}
	switch {
	case state.shared:
		item.Detail = "its filters are in a shared block"
		s.leave(item)
	case len(state.foreign) > 0:
		item.Detail = "foreign filter on it: " + state.foreign[0]
		s.leave(item)
	default:
		item.ref = clsactRef{link.index}
		s.found(item)
	}
}

func removeFilterItem(ctx context.Context, s *session, item Item) error {
	switch ref := item.ref.(type) {
	case filterRef:
		return s.removeFilter(ctx, ref)
	case clsactRef:
		return s.removeClsact(ctx, ref.link)
	}
	return fmt.Errorf("identity of type %T", item.ref)
}

// removeFilter looks again and deletes. The kernel has no request that does
// both at once.
func (s *session) removeFilter(ctx context.Context, ref filterRef) error {
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	list, err := sock.filters(ctx, ref.link, ref.parent)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.place() != ref.place() {
			continue
		}
		if f.filterRef != ref || f.kind != "bpf" {
			return fmt.Errorf("program %d is there: %w", f.prog, errOther)
		}
		return sock.deleteFilter(ref)
	}
	return nil
}

// removeClsact deletes a clsact qdisc if no filter is left on it.
func (s *session) removeClsact(ctx context.Context, link int) error {
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	for _, parent := range []uint32{parentIngress, parentEgress} {
		list, err := sock.filters(ctx, link, parent)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			return fmt.Errorf("%s is on it; left as it is", list[len(list)-1].describe())
		}
	}
	err = sock.change(unix.RTM_DELQDISC,
		&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link), Parent: handleIngress},
		nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("clsact")))
	if err == nil || gone(err) || !sock.hasClsact(link) {
		return nil
	}
	return err
}
