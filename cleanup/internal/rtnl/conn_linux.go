// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"cmp"
	"context"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/nlmsg"
)

// Conn is one netlink socket, used for every request.
type Conn struct {
	proto  int
	handle *nl.SocketHandle
	words  bool // the kernel is to say in words why it refuses
}

// Open opens a socket for links, traffic control and routing.
func Open() (*Conn, error) { return open(unix.NETLINK_ROUTE) }

// OpenXFRM opens a socket for IPsec. The error is EPROTONOSUPPORT on a kernel
// without xfrm.
func OpenXFRM() (*Conn, error) { return open(unix.NETLINK_XFRM) }

func open(proto int) (*Conn, error) {
	handle, err := nlmsg.Open(proto)
	if err != nil {
		return nil, err
	}
	return &Conn{proto: proto, handle: handle}, nil
}

// Close closes the socket.
func (c *Conn) Close() { c.handle.Close() }

// request makes a request. An error has the kernel's own words for a refusal, but not
// that of a dump: at its end nl takes them for an echo of the request, and panics.
func (c *Conn) request(typ, flags int, data []nl.NetlinkRequestData) (*nl.NetlinkRequest, error) {
	if words := flags&unix.NLM_F_DUMP == 0; words != c.words {
		if err := c.handle.Socket.SetExtAck(words); err != nil {
			return nil, err
		}
		c.words = words
	}
	req := nl.NewNetlinkRequest(typ, flags)
	req.Sockets, req.Data = map[int]*nl.SocketHandle{c.proto: c.handle}, data
	return req, nil
}

// execute sends a request and returns the messages of the type reply in the answer.
func (c *Conn) execute(typ, flags int, reply uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	req, err := c.request(typ, flags, data)
	if err != nil {
		return nil, err
	}
	return req.Execute(c.proto, reply)
}

// change sends a request that changes something and waits for the answer.
func (c *Conn) change(typ int, data ...nl.NetlinkRequestData) error {
	_, err := c.execute(typ, unix.NLM_F_ACK, 0, data...)
	return err
}

// get asks for one object; the answer is its message. The acknowledgement is
// asked for because for some objects that are not there the kernel sends
// nothing else.
func (c *Conn) get(typ int, data ...nl.NetlinkRequestData) ([]byte, error) {
	msgs, err := c.execute(typ, unix.NLM_F_ACK, newOf(typ), data...)
	if err == nil && len(msgs) == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, err
	}
	return msgs[0], nil
}

// newOf is the type of the messages that answer a request for an object: for
// each sort of object the kernel numbers NEW, DEL and GET in a row.
func newOf(get int) uint16 { return uint16(get - 2) }

// list lists objects as parse reads them.
func list[T any](ctx context.Context, c *Conn, typ int, parse func([]byte) (T, error), data ...nl.NetlinkRequestData) ([]T, error) {
	var out []T
	err := c.dump(ctx, typ, func() { out = nil }, func(msg []byte) error {
		object, err := parse(msg)
		out = append(out, object)
		return err
	}, data...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// dump calls each with the message of each object as it comes; what was read together
// is freed together. It calls begin first, and once more whenever a change interrupts
// the dump: then all come again. An error of each ends it.
func (c *Conn) dump(ctx context.Context, typ int, begin func(), each func(msg []byte) error, data ...nl.NetlinkRequestData) error {
	_, err := nlmsg.Retry(ctx, func() (_ struct{}, err error) {
		req, err := c.request(typ, unix.NLM_F_DUMP, data)
		if err != nil {
			return struct{}{}, err
		}
		begin()
		var failed error
		err = req.ExecuteIter(c.proto, newOf(typ), func(msg []byte) bool {
			failed = each(msg)
			return failed == nil
		})
		return struct{}{}, cmp.Or(failed, err)
	})
	return err
}
