// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// The parents of the filters of a clsact or ingress qdisc (linux/pkt_sched.h).
const (
	Ingress = 0xfffffff2
	Egress  = 0xfffffff3

	plainIngress = 0xffff0000 // of the filters of an ingress qdisc
	qdiscParent  = 0xfffffff1 // of both qdiscs themselves
)

// struct tcmsg, and attributes behind it, which x/sys does not name
// (linux/rtnetlink.h, linux/pkt_cls.h).
const (
	sizeofTcMsg     = 20
	tcaKind         = 1
	tcaOptions      = 2
	tcaChain        = 11
	tcaIngressBlock = 13
	tcaEgressBlock  = 14
	tcaBPFName      = 7
	tcaBPFID        = 11
)

// SharedBlock stands for the link in messages on filters of a shared block; the
// parent is the block's index then.
const SharedBlock = -1

// Qdisc is a link's clsact or ingress qdisc.
type Qdisc struct {
	Kind   string
	Shared bool // its filters are in a block that other links use, too

	link   int
	parent uint32
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
	Link    int
	Parent  uint32
	Chain   uint32
	Info    uint32 // priority << 16 | protocol, as the kernel encodes it
	Handle  uint32 // 0 in the message that stands for a priority and protocol
	Program uint32
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

// tcHeader makes struct tcmsg of where a filter or a qdisc is; the family is AF_UNSPEC.
func tcHeader(at FilterID) []byte {
	msg := make([]byte, 4, sizeofTcMsg)
	for _, field := range []uint32{uint32(at.Link), at.Handle, at.Parent, at.Info} {
		msg = binary.NativeEndian.AppendUint32(msg, field)
	}
	return msg
}

func parseFilter(msg []byte) (Filter, error) {
	if len(msg) < sizeofTcMsg {
		return Filter{}, fmt.Errorf("filter message of %d bytes is too short", len(msg))
	}
	var f Filter
	f.Link = int(int32(nlmsg.U32(msg[4:])))
	f.Handle, f.Parent, f.Info = nlmsg.U32(msg[8:]), nlmsg.U32(msg[12:]), nlmsg.U32(msg[16:])
	err := nlmsg.Attrs(msg[sizeofTcMsg:], func(typ uint16, value []byte) error {
		switch typ {
		case tcaKind:
			f.Kind = unix.ByteSliceToString(value)
		case tcaChain:
			f.Chain = nlmsg.U32(value)
		case tcaOptions:
			if f.Kind == "bpf" {
				return f.parseBPF(value)
			}
		}
		return nil
	})
	return f, err
}

func (f *Filter) parseBPF(options []byte) error {
	return nlmsg.Attrs(options, func(typ uint16, value []byte) error {
		switch typ {
		case tcaBPFName:
			f.Name = unix.ByteSliceToString(value)
		case tcaBPFID:
			f.Program = nlmsg.U32(value)
		}
		return nil
	})
}

// Filters lists the filters at one parent of a link's qdisc. For each priority
// and protocol the kernel adds a message without a handle.
func (c *Conn) Filters(ctx context.Context, link int, parent uint32) ([]Filter, error) {
	filters, err := list(ctx, c, unix.RTM_GETTFILTER, parseFilter,
		tcHeader(FilterID{Link: link, Parent: parent}))
	if nlmsg.Gone(err) {
		return nil, nil
	}
	return filters, err
}

// Qdiscs lists the clsact and ingress qdiscs of all links, in one dump.
func (c *Conn) Qdiscs(ctx context.Context) (map[int]Qdisc, error) {
	all, err := list(ctx, c, unix.RTM_GETQDISC, parseQdisc, tcHeader(FilterID{}))
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil // a kernel without traffic control
	}
	if err != nil {
		return nil, fmt.Errorf("list qdiscs: %w", err)
	}
	out := map[int]Qdisc{}
	for _, q := range all {
		if q.parent == qdiscParent {
			out[q.link] = q
		}
	}
	return out, nil
}

func parseQdisc(msg []byte) (q Qdisc, err error) {
	if len(msg) < sizeofTcMsg {
		return q, fmt.Errorf("qdisc message of %d bytes is too short", len(msg))
	}
	q.link, q.parent = int(int32(nlmsg.U32(msg[4:]))), nlmsg.U32(msg[12:])
	err = nlmsg.Attrs(msg[sizeofTcMsg:], func(typ uint16, value []byte) error {
		switch typ {
		case tcaKind:
			q.Kind = unix.ByteSliceToString(value)
		case tcaIngressBlock, tcaEgressBlock:
			q.Shared = q.Shared || nlmsg.U32(value) != 0
		}
		return nil
	})
	return q, err
}

// DeleteFilter deletes a BPF filter; already gone is success.
func (c *Conn) DeleteFilter(f FilterID) error {
	data := [][]byte{tcHeader(f), nlmsg.String(tcaKind, "bpf")}
	if f.Chain != 0 {
		data = append(data, nlmsg.Number(tcaChain, f.Chain))
	}
	if err := c.change(unix.RTM_DELTFILTER, 0, data...); err != nil && !nlmsg.Gone(err) {
		return err
	}
	return nil
}

// hasClsact reports whether a link has a clsact qdisc. A request to delete a missing one fails
// like an invalid request.
func (c *Conn) hasClsact(link int) bool {
	msg, err := c.get(unix.RTM_GETQDISC, tcHeader(FilterID{Link: link, Parent: qdiscParent}))
	if err != nil {
		return !nlmsg.Gone(err)
	}
	q, err := parseQdisc(msg)
	return err != nil || q.Kind == "clsact"
}

// DeleteClsact deletes a link's clsact qdisc; already gone is success.
func (c *Conn) DeleteClsact(link int) error {
	err := c.change(unix.RTM_DELQDISC, 0, tcHeader(FilterID{Link: link, Parent: qdiscParent}), nlmsg.String(tcaKind, "clsact"))
	if err == nil || nlmsg.Gone(err) || !c.hasClsact(link) {
		return nil
	}
	return err
}
