// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
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

// linkHeader makes struct ifinfomsg with an index; the family is AF_UNSPEC.
func linkHeader(index int) []byte {
	return (&nl.IfInfomsg{IfInfomsg: unix.IfInfomsg{Index: int32(index)}}).Serialize()
}

// Links lists all links, by two lists: where links come and go meanwhile, kernels before
// 6.9 may leave another one out of a list, since they go on by its position and not by
// its index ("rtnetlink: use xarray iterator to implement rtnl_dump_ifinfo()"), and not
// report that it was interrupted: they do so only in a batch that has links.
func (c *Conn) Links(ctx context.Context) ([]Link, error) {
	byIndex := map[int]Link{}
	for range 2 {
		links, err := list(ctx, c, unix.RTM_GETLINK, parseLink, linkHeader(0), number(unix.IFLA_EXT_MASK, rtextSkipStats))
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

// Link returns one link; the error is [nlread.Gone] where there is none.
func (c *Conn) Link(index int) (Link, error) {
	req, err := c.request(unix.RTM_GETLINK, 0, linkHeader(index), number(unix.IFLA_EXT_MASK, rtextSkipStats))
	if err != nil {
		return Link{}, err
	}
	msgs, err := req.Execute(c.proto, unix.RTM_NEWLINK)
	if err != nil {
		return Link{}, err
	}
	return parseLink(slices.Concat(msgs...))
}

func parseLink(msg []byte) (Link, error) {
	if len(msg) < unix.SizeofIfInfomsg {
		return Link{}, fmt.Errorf("link message of %d bytes is too short", len(msg))
	}
	attrs, err := nlread.Values(msg[unix.SizeofIfInfomsg:])
	info, infoErr := nlread.Values(attrs[unix.IFLA_LINKINFO])
	xdp, xdpErr := nlread.Values(attrs[unix.IFLA_XDP])
	link := Link{Group: nlread.U32(attrs[unix.IFLA_GROUP])}
	link.Index = int(nl.DeserializeIfInfomsg(msg).Index)
	link.Name = unix.ByteSliceToString(attrs[unix.IFLA_IFNAME])
	link.Kind = unix.ByteSliceToString(info[unix.IFLA_INFO_KIND])
	if attrs[unix.IFLA_LINK_NETNSID] == nil {
		link.Lower = int(int32(nlread.U32(attrs[unix.IFLA_LINK])))
	}
	for _, mode := range xdpModes {
		if program := nlread.U32(xdp[mode.program]); program != 0 {
			link.XDP = append(link.XDP, XDP{mode.flag, program})
		}
	}
	return link, errors.Join(err, infoErr, xdpErr)
}

// SetGroup puts a link into a group.
func (c *Conn) SetGroup(index int, group uint32) error {
	return c.change(unix.RTM_SETLINK, 0, linkHeader(index), number(unix.IFLA_GROUP, group))
}

// DeleteGroup deletes all links of a group in one go.
func (c *Conn) DeleteGroup(group uint32) error {
	return c.change(unix.RTM_DELLINK, 0, linkHeader(0), number(unix.IFLA_GROUP, group))
}

// XDPMode is the flag of the mode in which a program is attached.
type XDPMode uint32

// xdpModes are the modes, with the attributes for their programs.
var xdpModes = []struct {
	flag    XDPMode
	name    string
	program uint16
}{
	{unix.XDP_FLAGS_SKB_MODE, "generic", unix.IFLA_XDP_SKB_PROG_ID},
	{unix.XDP_FLAGS_DRV_MODE, "native", unix.IFLA_XDP_DRV_PROG_ID},
	{unix.XDP_FLAGS_HW_MODE, "offload", unix.IFLA_XDP_HW_PROG_ID},
}

// String returns "generic", "native" or "offload".
func (m XDPMode) String() string {
	for _, mode := range xdpModes {
		if mode.flag == m {
			return mode.name
		}
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// XDP is one program that is attached to a link.
type XDP struct {
	Mode    XDPMode
	Program uint32
}

// DetachXDP detaches the program in a mode, on the condition that it is the one whose
// descriptor is expected; -1 stands for none. The kernel refuses with EEXIST if another
// is attached, and explains why if a bpf_link has attached it.
func (c *Conn) DetachXDP(link int, mode XDPMode, expected int) error {
	const none = ^uint32(0)
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, slices.Concat(
		number(unix.IFLA_XDP_FD, none),
		number(unix.IFLA_XDP_FLAGS, uint32(mode)|unix.XDP_FLAGS_REPLACE),
		number(unix.IFLA_XDP_EXPECTED_FD, uint32(expected)),
	))
	return c.change(unix.RTM_SETLINK, 0, linkHeader(link), xdp.Serialize())
}
