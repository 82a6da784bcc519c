// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linkInfo is what is known of a network link.
type linkInfo struct {
	index int
	name  string
	kind  string // "" for a device that has no kind, such as a network card
	group uint32
	xdp   []xdpAttached
}

// linkRef identifies a link: indexes are not used again soon, and a link that
// was renamed in between is not the one that was listed.
type linkRef struct {
	index int
	name  string
	kind  string
}

func (l linkInfo) ref() linkRef { return linkRef{l.index, l.name, l.kind} }

// rtextSkipStats asks for links without their statistics, most of their size.
const rtextSkipStats = 1 << 3

func linkRequest(index int) []nl.NetlinkRequestData {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	return []nl.NetlinkRequestData{msg, nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(rtextSkipStats))}
}

func (r *rtnl) links(ctx context.Context) ([]linkInfo, error) {
	msgs, err := r.dump(ctx, unix.RTM_GETLINK, unix.RTM_NEWLINK, linkRequest(0)...)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	out := make([]linkInfo, 0, len(msgs))
	for _, msg := range msgs {
		link, err := parseLink(msg)
		if err != nil {
			return nil, err
		}
		out = append(out, link)
	}
	return out, nil
}

// link returns one link; the error is gone() where there is none.
func (r *rtnl) link(index int) (linkInfo, error) {
	msg, err := r.get(unix.RTM_GETLINK, unix.RTM_NEWLINK, linkRequest(index)...)
	if err != nil {
		return linkInfo{}, err
	}
	return parseLink(msg)
}

func parseLink(msg []byte) (linkInfo, error) {
	if len(msg) < unix.SizeofIfInfomsg {
		return linkInfo{}, fmt.Errorf("link message of %d bytes is too short", len(msg))
	}
	link := linkInfo{index: int(int32(u32(msg[4:])))}
	err := attrs(msg[unix.SizeofIfInfomsg:], func(typ uint16, value []byte) (err error) {
		switch typ {
		case unix.IFLA_IFNAME:
			link.name = unix.ByteSliceToString(value)
		case unix.IFLA_GROUP:
			link.group = u32(value)
		case unix.IFLA_LINKINFO:
			return attrs(value, func(typ uint16, value []byte) error {
				if typ == unix.IFLA_INFO_KIND {
					link.kind = unix.ByteSliceToString(value)
				}
				return nil
			})
		case unix.IFLA_XDP:
			link.xdp, err = parseXDP(value)
		}
		return err
	})
	return link, err
}

// links returns the links as they were when first asked for.
func (s *session) links(ctx context.Context) ([]linkInfo, error) {
	if s.linkList == nil {
		sock, err := s.netlink()
		if err != nil {
			return nil, err
		}
		if s.linkList, err = sock.links(ctx); err != nil {
			return nil, err
		}
	}
	return s.linkList, nil
}

// findLinks lists owned links. It needs to know what is attached to them, and
// goes on without where that cannot be found out.
func findLinks(ctx context.Context, s *session) error {
	links, err := s.links(ctx)
	if err != nil {
		return err
	}
	for _, link := range links {
		programs := s.programNames(link)
		if !s.own.ownsLink(link.name, link.kind, programs) {
			continue
		}
		item := Item{Kind: kindLink, Object: link.name, Detail: link.kind, ref: link.ref()}
		s.found(item)
	}
	return nil
}

// programNames returns the names of the owned programs that a link carries, as
// far as the finders of programs have seen them.
func (s *session) programNames(link linkInfo) []string {
	var names []string
	if tc := s.qdiscs[link.index]; tc != nil {
		for _, f := range tc.filters {
			names = append(names, f.name, s.programs[f.prog].name)
		}
	}
	names = append(names, s.hooked[link.index]...)
	for _, x := range link.xdp {
		if program := s.programs[x.prog]; program.owned {
			names = append(names, program.name)
		}
	}
	return names
}

// removeLink deletes one link.
func removeLink(s *session, ref linkRef) error {
	sock, err := s.netlink()
	if err != nil {
		return err
	}
	link, err := sock.link(ref.index)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if link.ref() != ref {
		return fmt.Errorf("%s has its index: %w", link.name, errOther)
	}
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(ref.index)
	err = sock.change(unix.RTM_DELLINK, msg)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w (a device of kind %q cannot be deleted)", err, ref.kind)
	case err != nil && !gone(err):
		return err
	}
	return s.verifyDeleted(link)
}
