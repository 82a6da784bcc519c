// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// The parents of the filters of a clsact or ingress qdisc (linux/pkt_sched.h).
const (
	Ingress = netlink.HANDLE_MIN_INGRESS
	Egress  = netlink.HANDLE_MIN_EGRESS

	plainIngress = 0xffff0000            // of the filters of an ingress qdisc
	qdiscParent  = netlink.HANDLE_CLSACT // of both qdiscs themselves
)

// SharedBlock stands for the link in messages on filters of a shared block; the
// parent is the block's index then.
const SharedBlock = -1

// Qdisc is a link's clsact or ingress qdisc.
type Qdisc struct {
	Kind   string
	Shared bool // its filters are in a block that other links use, too

	at nl.TcMsg
}

// Parents returns the parents of the filters on the qdisc.
func (q Qdisc) Parents() []uint32 {
	if q.Kind == "clsact" {
		return []uint32{Ingress, Egress}
	}
	return []uint32{plainIngress}
}

// FilterID identifies a tc filter by where it is and the program in it.
type FilterID struct {
	nl.TcMsg // its handle is 0 in the message that stands for a priority and protocol
	Chain    uint32
	Program  uint32
}

// Preference is the priority of the filter.
func (f FilterID) Preference() uint32 { return f.Info >> 16 }

// Slot is where the filter is, whatever program is in it.
func (f FilterID) Slot() FilterID {
	f.Program = 0
	return f
}

// Head is the slot of the message that stands for the filter's priority and
// protocol.
func (f FilterID) Head() FilterID {
	f.Program, f.Handle = 0, 0
	return f
}

// Filter is one message of a dump of filters.
type Filter struct {
	FilterID
	Kind string
	Name string
}

// tcKind encodes the kind of a filter or a qdisc as an attribute.
func tcKind(kind string) []byte {
	return nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)).Serialize()
}

// parseTC reads struct tcmsg and the attributes after it.
func parseTC(msg []byte) (*nl.TcMsg, map[uint16][]byte, error) {
	if len(msg) < nl.SizeofTcMsg {
		return nil, nil, fmt.Errorf("message of traffic control with %d bytes is too short", len(msg))
	}
	attrs, err := nlread.Values(msg[nl.SizeofTcMsg:])
	return nl.DeserializeTcMsg(msg), attrs, err
}

func parseFilter(msg []byte) (f Filter, err error) {
	tc, attrs, err := parseTC(msg)
	if err != nil {
		return f, err
	}
	f.TcMsg, f.Kind, f.Chain = *tc, unix.ByteSliceToString(attrs[nl.TCA_KIND]), nlread.U32(attrs[nl.TCA_CHAIN])
	if f.Kind == "bpf" {
		options, err := nlread.Values(attrs[nl.TCA_OPTIONS])
		f.Name, f.Program = unix.ByteSliceToString(options[nl.TCA_BPF_NAME]), nlread.U32(options[nl.TCA_BPF_ID])
		return f, err
	}
	return f, nil
}

// Filters lists the filters at one parent of a link's qdisc. For each priority
// and protocol the kernel adds a message without a handle.
func (c *Conn) Filters(ctx context.Context, link int32, parent uint32) ([]Filter, error) {
	filters, err := list(ctx, c, unix.RTM_GETTFILTER, parseFilter, (&nl.TcMsg{Ifindex: link, Parent: parent}).Serialize())
	return filters, nlread.Except(err, unix.ENOENT, unix.ENODEV)
}

// Qdiscs lists the clsact and ingress qdiscs of all links, in one dump.
func (c *Conn) Qdiscs(ctx context.Context) (map[int]Qdisc, error) {
	all, err := list(ctx, c, unix.RTM_GETQDISC, parseQdisc, (&nl.TcMsg{}).Serialize())
	if err != nil {
		return nil, fmt.Errorf("list qdiscs: %w", err)
	}
	out := map[int]Qdisc{}
	for _, q := range all {
		if q.at.Parent == qdiscParent {
			out[int(q.at.Ifindex)] = q
		}
	}
	return out, nil
}

func parseQdisc(msg []byte) (q Qdisc, err error) {
	tc, attrs, err := parseTC(msg)
	if err != nil {
		return q, err
	}
	q.at, q.Kind = *tc, unix.ByteSliceToString(attrs[nl.TCA_KIND])
	q.Shared = nlread.U32(attrs[nl.TCA_INGRESS_BLOCK]) != 0 || nlread.U32(attrs[nl.TCA_EGRESS_BLOCK]) != 0
	return q, nil
}

// DeleteFilter deletes a BPF filter; already gone is success.
func (c *Conn) DeleteFilter(f FilterID) error {
	data := [][]byte{f.Serialize(), tcKind("bpf")}
	if f.Chain != 0 {
		data = append(data, number(nl.TCA_CHAIN, f.Chain))
	}
	return nlread.Except(c.change(unix.RTM_DELTFILTER, 0, data...), unix.ENOENT, unix.ENODEV)
}

// DeleteClsact deletes a link's clsact qdisc; already gone is success. A request to delete a
// missing one fails like an invalid request.
func (c *Conn) DeleteClsact(ctx context.Context, link int) error {
	at := nl.TcMsg{Ifindex: int32(link), Parent: qdiscParent}
	err := c.change(unix.RTM_DELQDISC, 0, at.Serialize(), tcKind("clsact"))
	if err == nil || nlread.Gone(err) {
		return nil
	}
	if now, listErr := c.Qdiscs(ctx); listErr == nil && now[link].Kind != "clsact" {
		return nil
	}
	return err
}
