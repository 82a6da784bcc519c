// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/nlread"
)

// xdpObject is a program that is attached by XDP; bpfLink is 0 if it was attached
// by netlink. A bpf_link of another network namespace may look as if it had
// attached the program, so the kernel is asked.
type xdpObject struct {
	link int
	rtnl.XDP
	bpfLink link.ID
}

func (x xdpObject) onLink() int { return x.link }

func findXDP(ctx context.Context, s *search) error {
	list, err := s.links.all(ctx)
	if err != nil {
		return err
	}
	var errs failure.Set
	for _, l := range list {
		for _, x := range l.XDP {
			owned, err := s.programs.owns(x.Program)
			errs.Add(err)
			if owned {
				s.links.carries(l.Index, s.programs.name(x.Program))
				errs.Add(s.foundXDP(l, x))
			}
		}
	}
	return errs.Join()
}

func (s *search) foundXDP(l rtnl.Link, x rtnl.XDP) error {
	item := Item{
		Kind:   kindXDP,
		Object: l.Name + " " + s.programs.name(x.Program),
		Detail: fmt.Sprintf("%s program %d", x.Mode, x.Program),
	}
	object := xdpObject{link: l.Index, XDP: x}
	var err error
	if object.bpfLink, err = s.xdpLink(object); err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	if object.bpfLink != 0 {
		item.Detail += fmt.Sprintf(" bpf_link %d", object.bpfLink)
	}
	item.object = object
	s.foundAttached(item, bpfattach.Program{ID: ebpf.ProgramID(x.Program), Link: object.bpfLink}, l.Name)
	return nil
}

// xdpLink returns the bpf_link that attaches a program here, and 0 for one that
// is attached by netlink.
func (n *node) xdpLink(x xdpObject) (link.ID, error) {
	links, err := n.programs.bpfLinks()
	if err != nil {
		return 0, err
	}
	ids := links.XDP[bpfattach.XDPPoint{Link: x.link, Program: x.Program}]
	if len(ids) == 0 {
		return 0, nil
	}
	// A detachment on the condition that no program is attached: the kernel refuses it in
	// either case, and reports why.
	switch err = n.kernel.DetachXDP(x.link, x.Mode, -1); {
	case err == nil, nlread.Gone(err), errors.Is(err, unix.EEXIST):
		return 0, nil
	case !attachedByLink(err):
		return 0, fmt.Errorf("cannot tell whether it is attached by a bpf_link (%v have the same program and index): %w", ids, hint(kindXDP, err))
	case len(ids) > 1:
		return 0, fmt.Errorf("bpf_links %v attach the same program to a link with index %d in several network namespaces: cannot tell which one is in this namespace", ids, x.link)
	}
	return ids[0], nil
}

// attachedByLink reports whether the kernel refused a change by netlink because a
// bpf_link has attached the program. A driver may be busy as well, with another message.
func attachedByLink(err error) bool {
	return errors.Is(err, unix.EBUSY) && strings.Contains(err.Error(), "XDP link")
}

func (x xdpObject) remove(_ context.Context, r *removal) error {
	l, err := r.kernel.Link(x.link)
	if nlread.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, now := range l.XDP {
		switch {
		case now == x.XDP:
			return x.detach(r)
		case now.Mode == x.Mode:
			return fmt.Errorf("it is program %d now: %w", now.Program, failure.ErrReplaced)
		}
	}
	return nil
}

// detach detaches by netlink first, which touches nothing but this link; where
// the kernel refuses that because a bpf_link has attached the program, by the
// bpf_link that was listed, if it is the only one that it can be.
func (x xdpObject) detach(r *removal) error {
	err := x.detachByNetlink(r)
	if !attachedByLink(err) {
		return err
	}
	id, linkErr := r.xdpLink(x)
	switch {
	case linkErr != nil:
		return linkErr
	case id == 0:
		return err
	case id != x.bpfLink:
		return fmt.Errorf("bpf_link %d: %w", id, failure.ErrReplaced)
	}
	if err := bpfattach.DetachLink(id); err != nil {
		return err
	}
	l, err := r.kernel.Link(x.link)
	if nlread.Gone(err) {
		return nil
	}
	if err == nil && slices.Contains(l.XDP, x.XDP) {
		err = fmt.Errorf("it is still attached after bpf_link %d was detached", id)
	}
	return err
}

// detachByNetlink detaches on the condition that the program is the one meant.
func (x xdpObject) detachByNetlink(r *removal) error {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(x.Program))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return bpfattach.Hint(err)
	}
	defer prog.Close()
	switch err = r.kernel.DetachXDP(x.link, x.Mode, prog.FD()); {
	case nlread.Gone(err):
		return nil
	case errors.Is(err, unix.EEXIST):
		return failure.ErrReplaced
	}
	return err
}
