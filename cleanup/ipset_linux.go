// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ipsetRef identifies an ipset.
type ipsetRef struct {
	name string
	typ  string
}

// Numbers of linux/netfilter/ipset/ip_set.h.
const (
	ipsetFlagListHeader = 1 << 2            // list sets without what is in them
	ipsetErrBusy        = unix.Errno(4100)  // the set is used
	ipsetBusyFor        = 2 * time.Second   // see removeIPSet
	ipsetBusyPoll       = time.Second / 100 // likewise
)

func ipsetRequest(cmd, flags int, data ...*nl.RtAttr) *nl.NetlinkRequest {
	protocol := nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL))
	return nfRequest(unix.NFNL_SUBSYS_IPSET, cmd, flags, unix.NFPROTO_IPV4, append([]*nl.RtAttr{protocol}, data...)...)
}

// ipsets lists the owned sets; none where the kernel has no ipset.
func (s *session) ipsets(ctx context.Context) ([]ipsetRef, error) {
	sock, err := s.netfilter()
	if sock == nil {
		return nil, err
	}
	flags := nl.NewRtAttr(nl.IPSET_ATTR_FLAGS|unix.NLA_F_NET_BYTEORDER, binary.BigEndian.AppendUint32(nil, ipsetFlagListHeader))
	req := ipsetRequest(nl.IPSET_CMD_LIST, unix.NLM_F_DUMP, flags)
	return nfDump(ctx, sock, req, nl.IPSET_CMD_LIST, func(_ uint8, b []byte) (ipsetRef, bool, error) {
		set, err := parseIPSet(b)
		return set, err == nil && hasPrefix(set.name, s.own.IPSetPrefixes), err
	})
}

func parseIPSet(b []byte) (set ipsetRef, err error) {
	err = attrs(b, func(typ uint16, value []byte) error {
		switch typ {
		case nl.IPSET_ATTR_SETNAME:
			set.name = unix.ByteSliceToString(value)
		case nl.IPSET_ATTR_TYPENAME:
			set.typ = unix.ByteSliceToString(value)
		}
		return nil
	})
	return set, err
}

func findIPSets(ctx context.Context, s *session) error {
	if len(s.own.IPSetPrefixes) == 0 {
		return nil
	}
	sets, err := s.ipsets(ctx)
	for _, set := range sets {
		s.found(Item{Kind: kindIPSet, Object: set.name, Detail: set.typ, ref: set})
	}
	return err
}

// removeIPSets destroys sets. A set may be in another one that is to go, so it
// goes on as long as that gets on.
func removeIPSets(ctx context.Context, s *session, items []Item, done doneFunc) {
	for more := true; more; {
		var busy []Item
		for _, item := range items {
			if ctx.Err() != nil {
				return
			}
			err := s.removeIPSet(ctx, item, 0)
			if errors.Is(err, ipsetErrBusy) {
				busy = append(busy, item)
				continue
			}
			done(item, err)
		}
		more = len(busy) > 0 && len(busy) < len(items)
		items = busy
	}
	each(func(ctx context.Context, s *session, item Item) error {
		return s.removeIPSet(ctx, item, ipsetBusyFor)
	})(ctx, s, items, done)
}

// removeIPSet destroys a set, and waits for a while until it is no longer used:
// nf_tables lets go of what a rule used some time after the rule is gone.
func (s *session) removeIPSet(ctx context.Context, item Item, patience time.Duration) error {
	ref, ok := item.ref.(ipsetRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	for start := time.Now(); ; {
		err := s.destroyIPSet(ctx, ref)
		if !errors.Is(err, ipsetErrBusy) || time.Since(start) >= patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(ipsetBusyPoll):
		}
	}
}

func (s *session) destroyIPSet(ctx context.Context, ref ipsetRef) error {
	sets, err := s.ipsets(ctx)
	if err != nil {
		return err
	}
	there := false
	for _, set := range sets {
		if set.name == ref.name && set != ref {
			return fmt.Errorf("one of type %s is there: %w", set.typ, errOther)
		}
		there = there || set == ref
	}
	if !there {
		return nil
	}
	req := ipsetRequest(nl.IPSET_CMD_DESTROY, unix.NLM_F_ACK, nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(ref.name)))
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: s.nfSock.handle}
	switch _, err := req.Execute(unix.NETLINK_NETFILTER, 0); {
	case errors.Is(err, ipsetErrBusy):
		return fmt.Errorf("a rule or another set uses it: %w", busyErrno{ipsetErrBusy})
	case gone(err):
		return nil
	default:
		return err
	}
}

// busyErrno is a number of ipset's own, of which the system knows no text.
type busyErrno struct{ unix.Errno }

func (busyErrno) Error() string { return unix.EBUSY.Error() }

func (b busyErrno) Is(target error) bool { return target == unix.EBUSY || target == b.Errno }
