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

// rawFilter is one message of a filter dump.
type rawFilter struct {
	filterRef
	kind string
	name string
}

func parseFilter(msg []byte) (rawFilter, error) {
	if len(msg) < nl.SizeofTcMsg {
		return rawFilter{}, fmt.Errorf("filter message of %d bytes is too short", len(msg))
	}
	var f rawFilter
	f.link = int(int32(u32(msg[4:])))
	f.handle, f.parent, f.info = u32(msg[8:]), u32(msg[12:]), u32(msg[16:])
	err := attrs(msg[nl.SizeofTcMsg:], func(typ uint16, value []byte) error {
		switch typ {
		case nl.TCA_KIND:
			f.kind = unix.ByteSliceToString(value)
		case nl.TCA_CHAIN:
			f.chain = u32(value)
		case nl.TCA_OPTIONS:
			if f.kind == "bpf" {
				return f.parseBPF(value)
			}
		}
		return nil
	})
	return f, err
}

func (f *rawFilter) parseBPF(options []byte) error {
	return attrs(options, func(typ uint16, value []byte) error {
		switch typ {
		case nl.TCA_BPF_NAME:
			f.name = unix.ByteSliceToString(value)
		case nl.TCA_BPF_ID:
			f.prog = u32(value)
		}
		return nil
	})
}

// filters lists the filters at one parent of a link's qdisc. For each priority
// and protocol the kernel adds a message without a handle.
func (r *rtnl) filters(ctx context.Context, link int, parent uint32) ([]rawFilter, error) {
	msgs, err := r.dump(ctx, unix.RTM_GETTFILTER, unix.RTM_NEWTFILTER,
		&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link), Parent: parent})
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]rawFilter, 0, len(msgs))
	for _, msg := range msgs {
		f, err := parseFilter(msg)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// qdiscs lists the clsact and ingress qdiscs of all links, in one dump.
func (r *rtnl) qdiscs(ctx context.Context) (map[int]*tcState, error) {
	msgs, err := r.dump(ctx, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, &nl.TcMsg{Family: unix.AF_UNSPEC})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil // a kernel without traffic control
	}
	if err != nil {
		return nil, fmt.Errorf("list qdiscs: %w", err)
	}
	out := map[int]*tcState{}
	for _, msg := range msgs {
		if len(msg) < nl.SizeofTcMsg || u32(msg[12:]) != handleIngress {
			continue
		}
		state := &tcState{}
		err := attrs(msg[nl.SizeofTcMsg:], func(typ uint16, value []byte) error {
			switch typ {
			case nl.TCA_KIND:
				state.kind = unix.ByteSliceToString(value)
			case nl.TCA_INGRESS_BLOCK, nl.TCA_EGRESS_BLOCK:
				state.shared = state.shared || u32(value) != 0
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		out[int(int32(u32(msg[4:])))] = state
	}
	return out, nil
}

func (r *rtnl) deleteFilter(ref filterRef) error {
	data := []nl.NetlinkRequestData{
		&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(ref.link), Handle: ref.handle, Parent: ref.parent, Info: ref.info},
		nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("bpf")),
	}
	if ref.chain != 0 {
		data = append(data, nl.NewRtAttr(nl.TCA_CHAIN, nl.Uint32Attr(ref.chain)))
	}
	if err := r.change(unix.RTM_DELTFILTER, data...); err != nil && !gone(err) {
		return err
	}
	return nil
}

// hasClsact reports whether a link has a clsact qdisc. The request to delete
// one that is not there fails as an invalid one.
func (r *rtnl) hasClsact(link int) bool {
	msg, err := r.get(unix.RTM_GETQDISC, unix.RTM_NEWQDISC,
		&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link), Parent: handleIngress})
	if err != nil || len(msg) < nl.SizeofTcMsg {
		return err != nil && !gone(err)
	}
	kind := ""
	err = attrs(msg[nl.SizeofTcMsg:], func(typ uint16, value []byte) error {
		if typ == nl.TCA_KIND {
			kind = unix.ByteSliceToString(value)
		}
		return nil
	})
	return err != nil || kind == "clsact"
}
