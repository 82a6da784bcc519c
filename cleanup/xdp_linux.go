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
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// xdpMode is the flag of the mode in which a program is attached.
type xdpMode uint32

const (
	xdpGeneric xdpMode = unix.XDP_FLAGS_SKB_MODE
	xdpNative  xdpMode = unix.XDP_FLAGS_DRV_MODE
	xdpOffload xdpMode = unix.XDP_FLAGS_HW_MODE
)

func (m xdpMode) String() string {
	switch m {
	case xdpGeneric:
		return "generic"
	case xdpNative:
		return "native"
	case xdpOffload:
		return "offload"
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// xdpAttached is one program that is attached to a link.
type xdpAttached struct {
	mode xdpMode
	prog uint32
}

// xdpRef identifies an attachment: bpfLink is 0 for one made by netlink. One of
// a bpf_link in another network namespace may look the same, so that the kernel
// is asked which it is.
type xdpRef struct {
	link int
	xdpAttached
	bpfLink link.ID
}

func (r xdpRef) onLink() int { return r.link }

// xdpSlot is what the kernel tells of a bpf_link for XDP. It leaves out the
// network namespace, so two of them may have the same slot.
type xdpSlot struct {
	link int
	prog uint32
}

// parseXDP reads IFLA_XDP: one program for each mode that is in use.
func parseXDP(b []byte) ([]xdpAttached, error) {
	var out []xdpAttached
	modes := map[uint16]xdpMode{
		unix.IFLA_XDP_SKB_PROG_ID: xdpGeneric,
		unix.IFLA_XDP_DRV_PROG_ID: xdpNative,
		unix.IFLA_XDP_HW_PROG_ID:  xdpOffload,
	}
	err := attrs(b, func(typ uint16, value []byte) error {
		if mode, ok := modes[typ]; ok && u32(value) != 0 {
			out = append(out, xdpAttached{mode, u32(value)})
		}
		return nil
	})
	return out, err
}

func findXDP(ctx context.Context, s *session) error {
	links, err := s.links(ctx)
	if err != nil {
		return err
	}
	var errs errorSet
	for _, l := range links {
		for _, attached := range l.xdp {
			owned, err := s.ownsProgram(attached.prog)
			errs.add(err)
			if owned {
				errs.add(s.foundXDP(l, attached))
			}
		}
	}
	return errs.join()
}

func (s *session) foundXDP(l linkInfo, attached xdpAttached) error {
	item := Item{
		Kind:   kindXDP,
		Object: l.name + " " + s.programs[attached.prog].name,
		Detail: fmt.Sprintf("%s program %d", attached.mode, attached.prog),
	}
	ref := xdpRef{link: l.index, xdpAttached: attached}
	byLink, err := s.xdpByLink(ref)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	if byLink != 0 {
		ref.bpfLink = byLink
		item.Detail += fmt.Sprintf(" bpf_link %d", byLink)
	}
	item.ref = ref
	s.found(item)
	return nil
}

// xdpByLink returns the bpf_link that attaches a program here, and 0 for one
// that is attached by netlink.
func (s *session) xdpByLink(ref xdpRef) (link.ID, error) {
	links, err := s.bpfLinks()
	if err != nil {
		return 0, err
	}
	ids := links.xdp[xdpSlot{ref.link, ref.prog}]
	if len(ids) == 0 {
		return 0, nil
	}
	sock, err := s.netlink()
	if err != nil {
		return 0, err
	}
	// A detachment that expects no program to be there: the kernel refuses it
	// in either case, and says why.
	switch err = sock.takeXDP(ref, -1); {
	case err == nil, gone(err), errors.Is(err, unix.EEXIST):
		return 0, nil
	case !heldByLink(err):
		return 0, fmt.Errorf("whether it is attached by a bpf_link (%v have the same program and index) cannot be told: %w", ids, hint(kindXDP, err))
	case len(ids) > 1:
		return 0, fmt.Errorf("bpf_links %v attach the same program to a link with index %d, in several network namespaces: which one is here cannot be told", ids, ref.link)
	}
	return ids[0], nil
}

// heldByLink reports whether the kernel refused a change by netlink because a
// bpf_link has the place. A driver may be busy as well, and says other things.
func heldByLink(err error) bool {
	return errors.Is(err, unix.EBUSY) && strings.Contains(err.Error(), "XDP link")
}

func removeXDP(_ context.Context, s *session, item Item) error {
	ref, ok := item.ref.(xdpRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	l, err := sock.link(ref.link)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, attached := range l.xdp {
		switch {
		case attached == ref.xdpAttached:
			return s.detachXDP(ref)
		case attached.mode == ref.mode:
			return fmt.Errorf("program %d is there: %w", attached.prog, errOther)
		}
	}
	return nil
}

// detachXDP takes a program off a link. By netlink first, which touches nothing
// but this link; where the kernel refuses that because a bpf_link has the place,
// by the bpf_link that was listed, if it is the only one that it can be.
func (s *session) detachXDP(ref xdpRef) error {
	err := s.sock.detachXDP(ref)
	if !heldByLink(err) {
		return err
	}
	id, linkErr := s.xdpByLink(ref)
	switch {
	case linkErr != nil:
		return linkErr
	case id == 0:
		return err
	case id != ref.bpfLink:
		return fmt.Errorf("bpf_link %d: %w", id, errOther)
	}
	if err := detachBPFLink(id); err != nil {
		return err
	}
	l, err := s.sock.link(ref.link)
	if gone(err) {
		return nil
	}
	if err == nil && slices.Contains(l.xdp, ref.xdpAttached) {
		err = fmt.Errorf("it is still attached after bpf_link %d was detached", id)
	}
	return err
}

// detachXDP takes a program off a link, on the condition that it is still the
// one meant.
func (r *rtnl) detachXDP(ref xdpRef) error {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(ref.prog))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return bpfHint(err)
	}
	defer prog.Close()
	switch err = r.takeXDP(ref, prog.FD()); {
	case gone(err):
		return nil
	case errors.Is(err, unix.EEXIST):
		return errOther
	}
	return err
}

// takeXDP takes the program off a link, on the condition that the expected one
// is there; -1 stands for none.
func (r *rtnl) takeXDP(ref xdpRef, expected int) error {
	const none = ^uint32(0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(ref.link)
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	xdp.AddRtAttr(unix.IFLA_XDP_FD, nl.Uint32Attr(none))
	xdp.AddRtAttr(unix.IFLA_XDP_FLAGS, nl.Uint32Attr(uint32(ref.mode)|unix.XDP_FLAGS_REPLACE))
	xdp.AddRtAttr(unix.IFLA_XDP_EXPECTED_FD, nl.Uint32Attr(uint32(int32(expected))))
	return r.change(unix.RTM_SETLINK, msg, xdp)
}
