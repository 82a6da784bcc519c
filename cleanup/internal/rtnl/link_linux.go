// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// Link is a network link.
type Link struct {
	LinkID
	Lower int // the link of this namespace with which it goes: its peer, or the one that it is on
	Group uint32
	XDP   []XDP
}

// LinkID identifies a link: indexes are not used again soon, and a link that
// was renamed is not the one that was listed.
type LinkID struct {
	Index int
	Name  string
	Kind  string // "" for a device that has no kind, such as a network card
}

// rtextSkipStats asks for links without their statistics, most of their size.
const rtextSkipStats = 1 << 3

func linkRequest(index int) []byte {
	return append(linkHeader(index), nlmsg.Number(unix.IFLA_EXT_MASK, rtextSkipStats)...)
}

// linkHeader makes struct ifinfomsg with an index; the family is AF_UNSPEC.
func linkHeader(index int) []byte {
	msg := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(msg[4:], uint32(index))
	return msg
}

// Links lists all links, by two lists: where links come and go meanwhile, kernels before
// 6.9 may leave another one out of a list, since they go on by its position and not by
// its index ("rtnetlink: use xarray iterator to implement rtnl_dump_ifinfo()"), and not
// report that it was interrupted: they do so only in a batch that has links.
func (c *Conn) Links(ctx context.Context) ([]Link, error) {
	byIndex := map[int]Link{}
	for range 2 {
		links, err := list(ctx, c, unix.RTM_GETLINK, parseLink, linkRequest(0))
		if err != nil {
			return nil, fmt.Errorf("list links: %w", err)
		}
		for _, l := range links {
			byIndex[l.Index] = l
		}
	}
	links := make([]Link, 0, len(byIndex))
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		links = append(links, byIndex[index])
	}
	return links, nil
}

// Link returns one link; the error is [nlmsg.Gone] where there is none.
func (c *Conn) Link(index int) (Link, error) {
	msg, err := c.get(unix.RTM_GETLINK, linkRequest(index))
	if err != nil {
		return Link{}, err
	}
	return parseLink(msg)
}

func parseLink(msg []byte) (Link, error) {
	if len(msg) < unix.SizeofIfInfomsg {
		return Link{}, fmt.Errorf("link message of %d bytes is too short", len(msg))
	}
	var link Link
	lower, elsewhere := 0, false
	link.Index = int(int32(nlmsg.U32(msg[4:])))
	err := nlmsg.Attrs(msg[unix.SizeofIfInfomsg:], func(typ uint16, value []byte) (err error) {
		switch typ {
		case unix.IFLA_IFNAME:
			link.Name = unix.ByteSliceToString(value)
		case unix.IFLA_LINK:
			lower = int(int32(nlmsg.U32(value)))
		case unix.IFLA_LINK_NETNSID:
			elsewhere = true
		case unix.IFLA_GROUP:
			link.Group = nlmsg.U32(value)
		case unix.IFLA_LINKINFO:
			kind, err := nlmsg.Attr(value, unix.IFLA_INFO_KIND)
			link.Kind = unix.ByteSliceToString(kind)
			return err
		case unix.IFLA_XDP:
			link.XDP, err = parseXDP(value)
		}
		return err
	})
	if !elsewhere {
		link.Lower = lower
	}
	return link, err
}

// DeleteLink deletes a link.
func (c *Conn) DeleteLink(index int) error { return c.change(unix.RTM_DELLINK, 0, linkHeader(index)) }

// SetGroup puts a link into a group.
func (c *Conn) SetGroup(index int, group uint32) error {
	return c.change(unix.RTM_SETLINK, 0, linkHeader(index), nlmsg.Number(unix.IFLA_GROUP, group))
}

// DeleteGroup deletes all links of a group in one go.
func (c *Conn) DeleteGroup(group uint32) error {
	return c.change(unix.RTM_DELLINK, 0, linkHeader(0), nlmsg.Number(unix.IFLA_GROUP, group))
}

// XDPMode is the flag of the mode in which a program is attached.
type XDPMode uint32

// String returns "generic", "native" or "offload".
func (m XDPMode) String() string {
	switch m {
	case unix.XDP_FLAGS_SKB_MODE:
		return "generic"
	case unix.XDP_FLAGS_DRV_MODE:
		return "native"
	case unix.XDP_FLAGS_HW_MODE:
		return "offload"
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// XDP is one program that is attached to a link.
type XDP struct {
	Mode    XDPMode
	Program uint32
}

// parseXDP reads IFLA_XDP: one program for each mode that is in use.
func parseXDP(b []byte) ([]XDP, error) {
	var out []XDP
	modes := map[uint16]XDPMode{
		unix.IFLA_XDP_SKB_PROG_ID: unix.XDP_FLAGS_SKB_MODE,
		unix.IFLA_XDP_DRV_PROG_ID: unix.XDP_FLAGS_DRV_MODE,
		unix.IFLA_XDP_HW_PROG_ID:  unix.XDP_FLAGS_HW_MODE,
	}
	err := nlmsg.Attrs(b, func(typ uint16, value []byte) error {
		if mode, ok := modes[typ]; ok && nlmsg.U32(value) != 0 {
			out = append(out, XDP{mode, nlmsg.U32(value)})
		}
		return nil
	})
	return out, err
}

// DetachXDP detaches the program in a mode, on the condition that it is the one whose
// descriptor is expected; -1 stands for none. The kernel refuses with EEXIST if another
// is attached, and explains why if a bpf_link has attached it.
func (c *Conn) DetachXDP(link int, mode XDPMode, expected int) error {
	const none = ^uint32(0)
	xdp := slices.Concat(
		nlmsg.Number(unix.IFLA_XDP_FD, none),
		nlmsg.Number(unix.IFLA_XDP_FLAGS, uint32(mode)|unix.XDP_FLAGS_REPLACE),
		nlmsg.Number(unix.IFLA_XDP_EXPECTED_FD, uint32(expected)),
	)
	return c.change(unix.RTM_SETLINK, 0, linkHeader(link), nlmsg.Append(nil, unix.IFLA_XDP|unix.NLA_F_NESTED, xdp))
}
