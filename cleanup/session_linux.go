// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// finder lists one sort of things, and removes them.
type finder struct {
	name  string // plural, for errors
	least Scope  // the smallest scope that it belongs to
	kinds []string

	// find adds what is owned to the inventory.
	find func(context.Context, *session) error

	// remove removes items of its kinds, and calls done once for each that it
	// dealt with; the error is for the item.
	remove func(context.Context, *session, []Item, doneFunc)
}

type doneFunc func(Item, error)

// finders returns the finders in the order of removal. Others' configurations
// are back before the agent's goes: a directory is at no time without one.
func finders() []finder {
	return []finder{
		{"tc filters", BPFState, []string{kindFilter, kindClsact}, findFilters, each(removeFilterItem)},
		{"tcx programs", BPFState, []string{kindTCX}, findTCX, each(removeHook)},
		{"netkit programs", BPFState, []string{kindNetkit}, findNetkit, each(removeHook)},
		{"xdp programs", BPFState, []string{kindXDP}, findXDP, each(removeXDP)},
		{"cgroup programs", BPFState, []string{kindCgroup}, findCgroupPrograms, each(removeCgroupProgram)},
		{"ip rules", AllState, []string{kindRule}, findRules, each(removeRule)},
		{"routes", AllState, []string{kindRoute}, findRoutes, each(removeRoute)},
		{"xfrm policies and states", AllState, []string{kindXFRMPolicy, kindXFRMState}, findXFRM, each(removeXFRM)},
		{"links", AllState, []string{kindLink}, findLinks, removeLinks},
		{"network namespaces", AllState, []string{kindNetNS}, findNetNS, each(removeNetNS)},
		{"iptables-nft rules", AllState, []string{kindNFT}, findNFT, removeNFT},
		{"iptables-legacy rules", AllState, []string{kindLegacy}, findLegacy, removeLegacy},
		{"ipsets", AllState, []string{kindIPSet}, findIPSets, removeIPSets},
		{"pins", BPFState, []string{kindPin, kindPinDir}, findPins, each(removePin)},
		{"mounts", AllState, []string{kindMount}, findMounts, each(removeMount)},
		{"state directories", AllState, []string{kindStateDir}, findState, each(removeState)},
		{"configurations set aside", AllState, []string{kindAside}, findAside, each(restoreAside)},
		{"files", AllState, []string{kindFile}, findFiles, each(removeFile)},
	}
}

// each makes a finder's remove of a function that removes one item.
func each(remove func(context.Context, *session, Item) error) func(context.Context, *session, []Item, doneFunc) {
	return func(ctx context.Context, s *session, items []Item, done doneFunc) {
		for _, item := range items {
			if ctx.Err() != nil {
				return
			}
			done(item, remove(ctx, s, item))
		}
	}
}

// session is what one Inventory or one Remove knows and holds open. All of it
// is used on the calling thread.
type session struct {
	Cleanup
	own *owned
	inv Inventory

	sock     *rtnl
	nfSock   *nfnl
	kept     *kept              // paths that stay
	mounts   []mountPoint       // nil before
	linkList []linkInfo         // one dump, nil before
	qdiscs   map[int]*tcState   // by link, nil before
	blocks   map[filterRef]bool // filters of shared blocks that were listed
	programs map[uint32]bpfProgram
	hooked   map[int][]string // names of owned programs on hooks, by link
	pinned   *pinnedObjects   // nil before
	remain   map[int]bool     // links after some were removed, nil before
	slow     map[int]bool     // links that take long to delete
	listed   map[place]bool   // files and directories
	given    map[place]string // the name of the file set aside that gets a name back
	stuck    map[inode]string // by directory, what did not get its name back

	xfrm       *rtnl     // nil before
	linksOfBPF *bpfLinks // nil before
}

func newSession(c Cleanup, own *owned) *session {
	return &session{
		Cleanup:  c,
		own:      own,
		programs: map[uint32]bpfProgram{},
		blocks:   map[filterRef]bool{},
		hooked:   map[int][]string{},
		listed:   map[place]bool{},
		given:    map[place]string{},
		stuck:    map[inode]string{},
	}
}

func (s *session) close() {
	if s.sock != nil {
		s.sock.close()
	}
	if s.xfrm != nil {
		s.xfrm.close()
	}
	if s.nfSock != nil {
		s.nfSock.close()
	}
}

// netlink opens the socket on first use, in the thread's network namespace.
func (s *session) netlink() (*rtnl, error) {
	if s.sock == nil {
		sock, err := openNetlink(unix.NETLINK_ROUTE)
		if err != nil {
			return nil, err
		}
		s.sock = sock
	}
	return s.sock, nil
}

func (s *session) found(item Item) { s.inv.Items = append(s.inv.Items, item.printable()) }

func (s *session) leave(item Item) { s.inv.Left = append(s.inv.Left, item.printable()) }

func (c Cleanup) inventory(ctx context.Context, own *owned) (*Inventory, error) {
	s := newSession(c, own)
	defer s.close()
	if err := s.readKept(); err != nil {
		return &s.inv, err
	}
	var errs []error
	for _, f := range finders() {
		if c.Scope < f.least {
			continue
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("cleanup: find %s: %w", f.name, err))
			break
		}
		if err := f.find(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("cleanup: find %s: %w", f.name, err))
		}
	}
	return &s.inv, errors.Join(errs...)
}

func (c Cleanup) remove(ctx context.Context, own *owned, items []Item) error {
	s := newSession(c, own)
	defer s.close()
	if err := s.readKept(); err != nil {
		return err
	}
	var errs []error
	handled := 0
	done := func(item Item, err error) {
		handled++
		if err != nil {
			err = fmt.Errorf("%s %s: %w", item.verb(), item, hint(item.Kind, err))
			errs = append(errs, err)
		}
		if c.Progress != nil {
			c.Progress(handled, len(items), item.String(), err)
		}
	}
	s.slow = slowLinks(items)
	steps, unknown := plan(items)
	for _, item := range unknown {
		done(item, errors.New("it was not listed by an inventory"))
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			break
		}
		if step.attached {
			step.items = s.withoutGone(ctx, step.items, done)
		}
		step.remove(ctx, s, step.items, done)
	}
	if left := len(items) - handled; left > 0 {
		errs = append(errs, fmt.Errorf("stopped with %d of %d items left: %w", left, len(items), ctx.Err()))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("cleanup: %w", errors.Join(errs...))
}

// step is items that one finder removes together.
type step struct {
	finder
	items    []Item
	attached bool // to links that went before
}

// onLink is implemented by identities of things that go when their link goes.
type onLink interface{ onLink() int }

// plan sorts items into steps. What is attached to a link that is to go comes
// after the links: it goes with them, and only where a link could not be
// removed is it dealt with by itself.
func plan(items []Item) (steps []step, unknown []Item) {
	going := map[int]bool{}
	for _, item := range items {
		if l, ok := item.ref.(linkRef); ok {
			going[l.index] = true
		}
	}
	now, later := map[string][]Item{}, map[string][]Item{}
	for _, item := range items {
		if item.ref == nil {
			unknown = append(unknown, item)
		} else if at, ok := item.ref.(onLink); ok && going[at.onLink()] {
			later[item.Kind] = append(later[item.Kind], item)
		} else {
			now[item.Kind] = append(now[item.Kind], item)
		}
	}
	for _, f := range finders() {
		for _, kind := range f.kinds {
			steps = appendStep(steps, step{f, now[kind], false})
		}
		if f.name != "links" {
			continue
		}
		for _, attached := range finders() {
			for _, kind := range attached.kinds {
				steps = appendStep(steps, step{attached, later[kind], true})
			}
		}
	}
	return steps, unknown
}

func appendStep(steps []step, s step) []step {
	if len(s.items) == 0 {
		return steps
	}
	return append(steps, s)
}
