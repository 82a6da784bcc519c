// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Conn is one netlink socket for netfilter. Nil stands for a kernel without
// netfilter's netlink, which has nothing to list.
type Conn struct{ socket *nlmsg.Conn }

// bufferSize is room for one transaction, and for the answers to it.
const bufferSize = 8 << 20

// headerSize is the size of struct nfgenmsg, which each message begins with.
const headerSize = 4

// Open returns nil, and no error, on a kernel without netfilter's netlink.
func Open() (*Conn, error) {
	socket, err := nlmsg.Open(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// Without these (CAP_NET_ADMIN in the first user namespace) there is room
	// for some hundred answers.
	_ = socket.Set(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferSize)
	_ = socket.Set(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bufferSize)
	return &Conn{socket}, nil
}

// Close closes the socket.
func (c *Conn) Close() {
	if c != nil {
		c.socket.Close()
	}
}

// request is a message to a subsystem of netfilter.
func request(subsystem, cmd, flags uint16, family uint8, attrs ...[]byte) nlmsg.Request {
	body := []byte{family, unix.NFNETLINK_V0, 0, 0}
	for _, attr := range attrs {
		body = append(body, attr...)
	}
	return nlmsg.Request{Type: subsystem<<8 | cmd, Flags: flags, Body: body}
}

// dump lists objects: parse returns false for uninteresting ones. The list is empty if
// the kernel lacks the subsystem.
func dump[T any](ctx context.Context, c *Conn, req nlmsg.Request, reply uint16, parse func(family uint8, b []byte) (T, bool, error)) (list []T, err error) {
	if c == nil {
		return nil, nil
	}
	err = nlmsg.Retry(ctx, func() error {
		list = nil
		return c.socket.Do(req, req.Type&^0xff|reply, func(msg []byte) error {
			if len(msg) < headerSize {
				return fmt.Errorf("netfilter message of %d bytes is too short", len(msg))
			}
			object, ok, err := parse(msg[0], msg[headerSize:])
			if ok {
				list = append(list, object)
			}
			return err
		})
	})
	if errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	return list, remedy.Capabilities(err, "", remedy.NetAdmin)
}

// attributes returns the values of attributes by their types.
func attributes(b []byte) (map[uint16][]byte, error) {
	all := map[uint16][]byte{}
	err := nlmsg.Attrs(b, func(typ uint16, value []byte) error {
		all[typ] = value
		return nil
	})
	return all, err
}

// transaction sends messages of one subsystem as a whole: either all take
// effect or none. The result has the error for each message that the kernel refuses, by
// its index; err is the transaction's.
func (c *Conn) transaction(subsystem uint16, msgs []nlmsg.Request) (refused map[int]error, err error) {
	header := []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, byte(subsystem >> 8), byte(subsystem)}
	begin := nlmsg.Request{Type: unix.NFNL_MSG_BATCH_BEGIN, Body: header}
	end := nlmsg.Request{Type: unix.NFNL_MSG_BATCH_END, Body: header}
	first, err := c.socket.Send(slices.Concat([]nlmsg.Request{begin}, msgs, []nlmsg.Request{end})...)
	if err != nil {
		return nil, os.NewSyscallError("netfilter transaction", err)
	}
	return c.answers(first, len(msgs))
}

// answers collects the acknowledgements of count messages after the first one, which
// begins the transaction and is answered only if that fails.
func (c *Conn) answers(first uint32, count int) (map[int]error, error) {
	refused := map[int]error{}
	for seen := 0; seen < count; {
		msgs, err := c.socket.Receive()
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
