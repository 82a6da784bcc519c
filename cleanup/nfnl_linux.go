// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// nfnl is one netlink socket for netfilter, in the network namespace of the
// thread that opened it.
type nfnl struct{ handle *nl.SocketHandle }

// nfnlBuffer is room for the answers to one transaction, and for it itself.
const nfnlBuffer = 8 << 20

// openNfnl returns nil, and no error, on a kernel without netfilter's netlink.
func openNfnl() (*nfnl, error) {
	sock, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open a netfilter socket: %w", err)
	}
	// Without these (CAP_NET_ADMIN in the first user namespace) there is room
	// for some hundred answers.
	_ = sock.SetReceiveBufferSize(nfnlBuffer, true)
	_ = unix.SetsockoptInt(sock.GetFd(), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, nfnlBuffer)
	_ = unix.SetsockoptInt(sock.GetFd(), unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	timeout := unix.NsecToTimeval(int64(rtnlTimeout))
	if err := errors.Join(sock.SetSendTimeout(&timeout), sock.SetReceiveTimeout(&timeout)); err != nil {
		sock.Close()
		return nil, fmt.Errorf("netfilter socket timeouts: %w", err)
	}
	return &nfnl{&nl.SocketHandle{Socket: sock}}, nil
}

// netfilter opens the socket on first use, in the thread's network namespace.
// It is nil on a kernel without netfilter's netlink.
func (s *session) netfilter() (*nfnl, error) {
	if s.nfSock == nil {
		sock, err := openNfnl()
		if err != nil {
			return nil, err
		}
		s.nfSock = sock
	}
	return s.nfSock, nil
}

func (n *nfnl) close() { n.handle.Close() }

// nfgenmsg is the header of every message (linux/netfilter/nfnetlink.h).
type nfgenmsg struct {
	family   uint8
	resource uint16
}

func (m nfgenmsg) Len() int { return sizeofNfgenmsg }

func (m nfgenmsg) Serialize() []byte {
	return []byte{m.family, 0, byte(m.resource >> 8), byte(m.resource)}
}

const sizeofNfgenmsg = 4

// nfRequest is a message to a subsystem of netfilter.
func nfRequest(subsystem, cmd, flags int, family uint8, data ...*nl.RtAttr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(subsystem<<8|cmd, flags)
	req.AddData(nfgenmsg{family: family})
	for _, attr := range data {
		req.AddData(attr)
	}
	return req
}

// nfDump lists objects: parse returns false for those that are of no interest.
// Nothing is there where the kernel lacks the subsystem.
func nfDump[T any](ctx context.Context, n *nfnl, req *nl.NetlinkRequest, reply int, parse func(family uint8, b []byte) (T, bool, error)) ([]T, error) {
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: n.handle}
	list, err := retryDump(ctx, func() ([]T, error) {
		var out []T
		var parseErr error
		err := req.ExecuteIter(unix.NETLINK_NETFILTER, uint16(int(req.Type)&^0xff|reply), func(msg []byte) bool {
			if len(msg) < sizeofNfgenmsg {
				parseErr = fmt.Errorf("netfilter message of %d bytes is too short", len(msg))
				return false
			}
			object, ok, err := parse(msg[0], msg[sizeofNfgenmsg:])
			if parseErr = err; ok {
				out = append(out, object)
			}
			return err == nil
		})
		return out, errors.Join(err, parseErr)
	})
	if errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	return list, remedy.Capabilities(err, "", remedy.NetAdmin)
}

// transaction sends messages of one subsystem as a whole: either all take
// effect or none. The result has an error for each message that the kernel
// objects to, by its place; err is for the transaction.
func (n *nfnl) transaction(subsystem int, msgs []*nl.NetlinkRequest) (refused map[int]error, err error) {
	first := atomic.AddUint32(&n.handle.Seq, uint32(len(msgs)+2)) - uint32(len(msgs)+1)
	envelope := func(typ int) *nl.NetlinkRequest {
		req := nl.NewNetlinkRequest(typ, 0)
		req.AddData(nfgenmsg{resource: uint16(subsystem)})
		return req
	}
	all := append([]*nl.NetlinkRequest{envelope(unix.NFNL_MSG_BATCH_BEGIN)}, msgs...)
	all = append(all, envelope(unix.NFNL_MSG_BATCH_END))
	var b []byte
	for i, msg := range all {
		msg.Seq = first + uint32(i)
		b = append(b, msg.Serialize()...)
	}
	sock := n.handle.Socket
	if err := unix.Sendto(sock.GetFd(), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("netfilter transaction", err)
	}
	return n.answers(first, len(msgs))
}

// answers collects the acknowledgements of count messages after the first one,
// which begins the transaction and is answered only where that fails.
func (n *nfnl) answers(first uint32, count int) (map[int]error, error) {
	refused := map[int]error{}
	for seen := 0; seen < count; {
		msgs, _, err := n.handle.Socket.Receive()
		if err != nil {
			return refused, os.NewSyscallError("netfilter answer", err)
		}
		for _, m := range msgs {
			at := int(m.Header.Seq - first)
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 || at < 0 || at > count {
				continue
			}
			errno := unix.Errno(-int32(u32(m.Data)))
			switch {
			case at == 0 && errno != 0:
				return refused, os.NewSyscallError("netfilter transaction", errno)
			case at == 0:
				continue
			case errno != 0:
				refused[at-1] = errno
			}
			seen++
		}
	}
	return refused, nil
}
