// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"

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

// xdpRef identifies an attachment: bpfLink is 0 for one made by netlink.
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
	ids, err := s.xdpLinkIDs(l.index, attached.prog)
	if err != nil {
		return err
	}
	ref := xdpRef{link: l.index, xdpAttached: attached}
	switch len(ids) {
	case 0:
	case 1:
		ref.bpfLink = ids[0]
		item.Detail += fmt.Sprintf(" bpf_link %d", ids[0])
	default:
		return fmt.Errorf("%s: bpf_links %v attach the same program to a link with index %d, in several network namespaces: which one is here cannot be told", item, ids, l.index)
	}
	item.ref = ref
	s.found(item)
	return nil
}

// xdpLinkIDs returns the bpf_links for XDP with a program at a link's index.
func (s *session) xdpLinkIDs(index int, prog uint32) ([]link.ID, error) {
	links, err := s.bpfLinks()
	if err != nil {
		return nil, err
	}
	return links.xdp[xdpSlot{index, prog}], nil
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
		case attached == ref.xdpAttached && ref.bpfLink != 0:
			return detachBPFLink(ref.bpfLink)
		case attached == ref.xdpAttached:
			return sock.detachXDP(ref)
		case attached.mode == ref.mode:
			return fmt.Errorf("program %d is there: %w", attached.prog, errOther)
		}
	}
	return nil
}

// detachXDP takes a program off a link, on the condition that it is still the
// one meant; kernels before 5.7 do not know the condition.
func (r *rtnl) detachXDP(ref xdpRef) error {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(ref.prog))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return bpfHint(err)
	}
	defer prog.Close()
	err = r.setXDP(ref.link, -1, uint32(ref.mode)|unix.XDP_FLAGS_REPLACE, prog.FD())
	if errors.Is(err, unix.EINVAL) {
		err = r.setXDP(ref.link, -1, uint32(ref.mode), -1)
	}
	switch {
	case gone(err):
		return nil
	case errors.Is(err, unix.EEXIST):
		return errOther
	}
	return err
}

func (r *rtnl) setXDP(index, fd int, flags uint32, expected int) error {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	xdp.AddRtAttr(unix.IFLA_XDP_FD, nl.Uint32Attr(uint32(int32(fd))))
	xdp.AddRtAttr(unix.IFLA_XDP_FLAGS, nl.Uint32Attr(flags))
	if expected >= 0 {
		xdp.AddRtAttr(unix.IFLA_XDP_EXPECTED_FD, nl.Uint32Attr(uint32(expected)))
	}
	return r.change(unix.RTM_SETLINK, msg, xdp)
}
