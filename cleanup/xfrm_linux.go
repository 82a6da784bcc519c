// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	kindXFRMPolicy = "xfrm policy"
	kindXFRMState  = "xfrm state"
)

// xfrmRef identifies a policy or a state by the request that deletes it: a
// policy's index and selector, a state's destination, protocol and SPI.
type xfrmRef struct {
	typ     int
	request string
}

// xfrmObject is a policy or a state of a dump.
type xfrmObject struct {
	xfrmRef
	mark Mark
	text string
}

// findXFRM lists owned policies and then states: a policy without its states
// drops packets.
func findXFRM(ctx context.Context, s *session) error {
	if len(s.own.XFRM) == 0 {
		return nil
	}
	sock, err := s.xfrmSocket()
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil // a kernel without xfrm
	}
	if err != nil {
		return err
	}
	var errs errorSet
	for _, dump := range []struct {
		kind       string
		get, reply int
		parse      func([]byte) (xfrmObject, error)
	}{
		{kindXFRMPolicy, nl.XFRM_MSG_GETPOLICY, nl.XFRM_MSG_NEWPOLICY, parsePolicy},
		{kindXFRMState, nl.XFRM_MSG_GETSA, nl.XFRM_MSG_NEWSA, parseState},
	} {
		// The messages end in padding that belongs to no attribute.
		msgs, err := sock.dump(ctx, dump.get, uint16(dump.reply))
		if err != nil {
			errs.add(fmt.Errorf("list %s: %w", dump.kind, hint(dump.kind, err)))
		}
		for _, msg := range msgs {
			object, err := dump.parse(msg)
			errs.add(err)
			if err == nil && s.own.ownsXFRM(object.mark) {
				s.found(Item{Kind: dump.kind, Object: object.text, Detail: "mark " + object.mark.String(), ref: object.xfrmRef})
			}
		}
	}
	return errs.join()
}

func (o *owned) ownsXFRM(mark Mark) bool {
	for _, rule := range o.XFRM {
		if rule.holds(mark) {
			return true
		}
	}
	return false
}

// xfrmAttrs reads what both kinds of messages have, and adds to a request what
// the kernel compares when it deletes.
func xfrmAttrs(b []byte, request []byte) (Mark, []byte, error) {
	var mark Mark
	err := attrs(b, func(typ uint16, value []byte) error {
		switch typ {
		case nl.XFRMA_MARK:
			if len(value) < nl.SizeofXfrmMark {
				return fmt.Errorf("xfrm mark of %d bytes", len(value))
			}
			mark = Mark{u32(value), u32(value[4:])}
		case nl.XFRMA_IF_ID, nl.XFRMA_POLICY_TYPE:
		default:
			return nil
		}
		request = appendAttr(request, typ, value)
		return nil
	})
	return mark, request, err
}

var policyDirections = []string{"in", "out", "fwd"}

func parsePolicy(msg []byte) (xfrmObject, error) {
	if len(msg) < nl.SizeofXfrmUserpolicyInfo {
		return xfrmObject{}, fmt.Errorf("xfrm policy message of %d bytes is too short", len(msg))
	}
	info := nl.DeserializeXfrmUserpolicyInfo(msg)
	id := nl.XfrmUserpolicyId{Sel: info.Sel, Index: info.Index, Dir: info.Dir}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUserpolicyInfo:], append([]byte{}, id.Serialize()...))
	dir := fmt.Sprintf("direction %d", info.Dir)
	if int(info.Dir) < len(policyDirections) {
		dir = policyDirections[info.Dir]
	}
	text := fmt.Sprintf("%s from %s to %s index %d", dir,
		xfrmPrefix(info.Sel.Family, info.Sel.Saddr, info.Sel.PrefixlenS),
		xfrmPrefix(info.Sel.Family, info.Sel.Daddr, info.Sel.PrefixlenD), info.Index)
	return xfrmObject{xfrmRef{nl.XFRM_MSG_DELPOLICY, string(request)}, mark, text}, err
}

func parseState(msg []byte) (xfrmObject, error) {
	if len(msg) < nl.SizeofXfrmUsersaInfo {
		return xfrmObject{}, fmt.Errorf("xfrm state message of %d bytes is too short", len(msg))
	}
	info := nl.DeserializeXfrmUsersaInfo(msg)
	id := nl.XfrmUsersaId{Daddr: info.Id.Daddr, Spi: info.Id.Spi, Family: info.Family, Proto: info.Id.Proto}
	mark, request, err := xfrmAttrs(msg[nl.SizeofXfrmUsersaInfo:], append([]byte{}, id.Serialize()...))
	text := fmt.Sprintf("from %s to %s proto %s spi 0x%x",
		xfrmAddr(info.Family, info.Saddr), xfrmAddr(info.Family, info.Id.Daddr),
		xfrmProto(info.Id.Proto), nl.Swap32(info.Id.Spi))
	return xfrmObject{xfrmRef{nl.XFRM_MSG_DELSA, string(request)}, mark, text}, err
}

func xfrmProto(proto uint8) string {
	switch proto {
	case unix.IPPROTO_ESP:
		return "esp"
	case unix.IPPROTO_AH:
		return "ah"
	}
	return fmt.Sprint(proto)
}

func xfrmAddr(family uint16, addr nl.XfrmAddress) netip.Addr {
	if family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(addr[:4]))
	}
	return netip.AddrFrom16(addr)
}

func xfrmPrefix(family uint16, addr nl.XfrmAddress, bits uint8) netip.Prefix {
	return netip.PrefixFrom(xfrmAddr(family, addr), int(bits))
}

// xfrmSocket opens the socket on first use, in the thread's network namespace.
func (s *session) xfrmSocket() (*rtnl, error) {
	if s.xfrm == nil {
		sock, err := openNetlink(unix.NETLINK_XFRM)
		if err != nil {
			return nil, err
		}
		s.xfrm = sock
	}
	return s.xfrm, nil
}

func removeXFRM(_ context.Context, s *session, item Item) error {
	ref, ok := item.ref.(xfrmRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	sock, err := s.xfrmSocket()
	if err != nil {
		return err
	}
	err = sock.change(ref.typ, rawMessage(ref.request))
	if gone(err) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
