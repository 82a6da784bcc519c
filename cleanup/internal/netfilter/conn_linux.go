// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/nlmsg"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Conn is one netlink socket for netfilter. Nil stands for a kernel without
// netfilter's netlink, which has nothing to list.
type Conn struct{ handle *nl.SocketHandle }

// bufferSize is room for one transaction, and for the answers to it.
const bufferSize = 8 << 20

// Open returns nil, and no error, on a kernel without netfilter's netlink.
func Open() (*Conn, error) {
	handle, err := nlmsg.Open(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// Without these (CAP_NET_ADMIN in the first user namespace) there is room
	// for some hundred answers.
	sock := handle.Socket
	_ = sock.SetReceiveBufferSize(bufferSize, true)
	_ = unix.SetsockoptInt(sock.GetFd(), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bufferSize)
	_ = unix.SetsockoptInt(sock.GetFd(), unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	return &Conn{handle}, nil
}

// Close closes the socket.
func (c *Conn) Close() {
	if c != nil {
		c.handle.Close()
	}
}

// request is a message to a subsystem of netfilter.
func request(subsystem, cmd, flags int, family uint8, data ...*nl.RtAttr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(subsystem<<8|cmd, flags)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family})
	for _, attr := range data {
		req.AddData(attr)
	}
	return req
}

// dump lists objects: parse returns false for those that are of no interest.
// Nothing is there where the kernel lacks the subsystem.
func dump[T any](ctx context.Context, c *Conn, req *nl.NetlinkRequest, reply int, parse func(family uint8, b []byte) (T, bool, error)) ([]T, error) {
	if c == nil {
		return nil, nil
	}
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: c.handle}
	list, err := nlmsg.Retry(ctx, func() ([]T, error) {
		var out []T
		var parseErr error
		err := req.ExecuteIter(unix.NETLINK_NETFILTER, uint16(int(req.Type)&^0xff|reply), func(msg []byte) bool {
			if len(msg) < nl.SizeofNfgenmsg {
				parseErr = fmt.Errorf("netfilter message of %d bytes is too short", len(msg))
				return false
			}
			object, ok, err := parse(msg[0], msg[nl.SizeofNfgenmsg:])
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
// objects to, by its index; err is for the transaction.
func (c *Conn) transaction(subsystem int, msgs []*nl.NetlinkRequest) (refused map[int]error, err error) {
	first := atomic.AddUint32(&c.handle.Seq, uint32(len(msgs)+2)) - uint32(len(msgs)+1)
	envelope := func(typ int) *nl.NetlinkRequest {
		req := nl.NewNetlinkRequest(typ, 0)
		req.AddData(&nl.Nfgenmsg{ResId: nl.Swap16(uint16(subsystem))})
		return req
	}
	all := append([]*nl.NetlinkRequest{envelope(unix.NFNL_MSG_BATCH_BEGIN)}, msgs...)
	all = append(all, envelope(unix.NFNL_MSG_BATCH_END))
	var b []byte
	for i, msg := range all {
		msg.Seq = first + uint32(i)
		b = append(b, msg.Serialize()...)
	}
	sock := c.handle.Socket
	if err := unix.Sendto(sock.GetFd(), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("netfilter transaction", err)
	}
	return c.answers(first, len(msgs))
}

// answers collects the acknowledgements of count messages after the first one,
// which begins the transaction and is answered only where that fails.
func (c *Conn) answers(first uint32, count int) (map[int]error, error) {
	refused := map[int]error{}
	for seen := 0; seen < count; {
		msgs, _, err := c.handle.Socket.Receive()
		if err != nil {
			return refused, os.NewSyscallError("netfilter answer", err)
		}
		for _, m := range msgs {
			at := int(m.Header.Seq - first)
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 || at < 0 || at > count {
				continue
			}
			errno := unix.Errno(-int32(nlmsg.U32(m.Data)))
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
