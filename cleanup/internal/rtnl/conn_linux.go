// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// Conn is a netlink socket, for one goroutine. The zero value is one for links, traffic
// control and routing. It opens at the first request.
type Conn struct {
	proto  int
	socket *nl.SocketHandle
}

// Close closes the socket.
func (c *Conn) Close() {
	if c.socket != nil {
		c.socket.Close()
	}
}

// request makes a request of its header and its attributes.
func (c *Conn) request(typ, flags int, data ...[]byte) (*nl.NetlinkRequest, error) {
	if c.socket == nil {
		socket, err := nl.Subscribe(c.proto) // to nothing
		if err != nil {
			return nil, os.NewSyscallError("netlink socket", err)
		}
		c.socket = &nl.SocketHandle{Socket: socket}
		if err := cmp.Or(socket.SetSendTimeout(&nl.SocketTimeoutTv), socket.SetReceiveTimeout(&nl.SocketTimeoutTv)); err != nil {
			return nil, err
		}
	}
	req := nl.NewNetlinkRequest(typ, flags)
	req.Sockets = map[int]*nl.SocketHandle{c.proto: c.socket}
	req.AddRawData(slices.Concat(data...))
	return req, nil
}

// change sends a request that changes something and waits for the answer, in which the kernel
// explains a refusal in words. It is not to do so otherwise: package nl panics at words that
// end a dump.
func (c *Conn) change(typ, flags int, data ...[]byte) error {
	req, err := c.request(typ, unix.NLM_F_ACK|flags, data...)
	if err != nil {
		return err
	}
	if err := c.socket.Socket.SetExtAck(true); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	_, err = req.Execute(c.proto, 0)
	return cmp.Or(err, c.socket.Socket.SetExtAck(false))
}

// newOf is the type of the messages that answer a request for an object: for
// each sort of object the kernel numbers NEW, DEL and GET in a row.
func newOf(get int) uint16 { return uint16(get - 2) }

// number encodes a number as an attribute.
func number(typ int, value uint32) []byte { return nl.NewRtAttr(typ, nl.Uint32Attr(value)).Serialize() }

// list lists objects as parse reads them.
func list[T any](ctx context.Context, c *Conn, typ int, parse func([]byte) (T, error), data ...[]byte) (out []T, err error) {
	err = c.dump(ctx, typ, func() { out = nil }, func(msg []byte) error {
		object, err := parse(msg)
		out = append(out, object)
		return err
	}, data...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// dump is [nlread.Dump]. A kernel without IPv6, policy routing or traffic control has none of
// their objects.
func (c *Conn) dump(ctx context.Context, typ int, begin func(), each func(msg []byte) error, data ...[]byte) error {
	req, err := c.request(typ, 0, data...)
	if err != nil {
		return err
	}
	return nlread.Except(nlread.Dump(ctx, c.proto, req, newOf(typ), begin, each), unix.EOPNOTSUPP, unix.EAFNOSUPPORT)
}
