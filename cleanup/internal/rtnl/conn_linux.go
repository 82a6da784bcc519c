// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// Conn is one netlink socket, used for every request.
type Conn struct{ socket *nlmsg.Conn }

// Open opens a socket for links, traffic control and routing.
func Open() (*Conn, error) { return open(unix.NETLINK_ROUTE) }

// OpenXFRM opens a socket for IPsec. The error is EPROTONOSUPPORT on a kernel
// without xfrm.
func OpenXFRM() (*Conn, error) { return open(unix.NETLINK_XFRM) }

// open opens a socket on which the kernel explains refusals in words.
func open(proto int) (*Conn, error) {
	socket, err := nlmsg.Open(proto)
	if err != nil {
		return nil, err
	}
	if err := socket.Set(unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1); err != nil {
		socket.Close()
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	return &Conn{socket}, nil
}

// Close closes the socket.
func (c *Conn) Close() { c.socket.Close() }

// change sends a request that changes something and waits for the answer. The
// data is the request's header and its attributes.
func (c *Conn) change(typ, flags uint16, data ...[]byte) error {
	return c.socket.Do(nlmsg.Request{Type: typ, Flags: unix.NLM_F_ACK | flags, Body: slices.Concat(data...)}, 0, nil)
}

// get asks for one object; the answer is its message. The acknowledgement is
// asked for because for some objects that do not exist the kernel sends
// nothing else.
func (c *Conn) get(typ uint16, data ...[]byte) (msg []byte, err error) {
	req := nlmsg.Request{Type: typ, Flags: unix.NLM_F_ACK, Body: slices.Concat(data...)}
	err = c.socket.Do(req, newOf(typ), func(body []byte) error {
		msg = body
		return nil
	})
	if err == nil && msg == nil {
		err = unix.ENOENT
	}
	return msg, err
}

// newOf is the type of the messages that answer a request for an object: for
// each sort of object the kernel numbers NEW, DEL and GET in a row.
func newOf(get uint16) uint16 { return get - 2 }

// list lists objects as parse reads them.
func list[T any](ctx context.Context, c *Conn, typ uint16, parse func([]byte) (T, error), data ...[]byte) ([]T, error) {
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

// dump calls each with the message of each object as it comes; messages that were read
// together are freed together. It calls begin first, and once more whenever a change
// interrupts the dump: then all come again. An error of each ends it.
func (c *Conn) dump(ctx context.Context, typ uint16, begin func(), each func(msg []byte) error, data ...[]byte) error {
	req := nlmsg.Request{Type: typ, Flags: unix.NLM_F_DUMP, Body: slices.Concat(data...)}
	return nlmsg.Retry(ctx, func() error {
		begin()
		return c.socket.Do(req, newOf(typ), each)
	})
}
