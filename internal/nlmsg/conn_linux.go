// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// timeout is how long the kernel may take for one message. It answers within the
	// requesting call.
	timeout = time.Minute

	// bufferSize is room for the longest message; the kernel fills half of it with
	// one part of a dump.
	bufferSize = 64 << 10
)

// Conn is a netlink socket, for one goroutine.
type Conn struct {
	fd       int
	sequence uint32 // of the last request
	buffer   []byte
}

// Open opens a socket in the network namespace of the calling thread.
func Open(proto int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	c := &Conn{fd: fd, buffer: make([]byte, bufferSize)}
	limit := unix.NsecToTimeval(int64(timeout))
	if err := errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
		c.Set(unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1), // see refusal
	); err != nil {
		c.Close()
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	return c, nil
}

// Close closes the socket.
func (c *Conn) Close() { unix.Close(c.fd) }

// Set sets an option of the socket.
func (c *Conn) Set(level, option, value int) error {
	return unix.SetsockoptInt(c.fd, level, option, value)
}

// Request is a message to the kernel.
type Request struct {
	Type  uint16
	Flags uint16 // beside NLM_F_REQUEST
	Body  []byte // aligned, as attributes are
}

func (r Request) append(to []byte, sequence uint32) []byte {
	to = binary.NativeEndian.AppendUint32(to, uint32(unix.SizeofNlMsghdr+len(r.Body)))
	to = binary.NativeEndian.AppendUint16(to, r.Type)
	to = binary.NativeEndian.AppendUint16(to, unix.NLM_F_REQUEST|r.Flags)
	to = binary.NativeEndian.AppendUint32(to, sequence)
	to = binary.NativeEndian.AppendUint32(to, 0) // the socket's number, which the kernel knows
	return append(to, r.Body...)
}

// Send sends requests together. It returns the first one's sequence number, which
// its answers have; each further request has the next number.
func (c *Conn) Send(requests ...Request) (first uint32, err error) {
	first = c.sequence + 1
	var b []byte
	for _, r := range requests {
		c.sequence++
		b = r.append(b, c.sequence)
	}
	err = uninterrupted(func() error { return unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) })
	return first, err
}

// Receive waits for messages of the kernel.
func (c *Conn) Receive() ([]syscall.NetlinkMessage, error) {
	var n int
	var from unix.Sockaddr
	err := uninterrupted(func() (err error) {
		n, from, err = unix.Recvfrom(c.fd, c.buffer, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
		return nil, errors.New("a netlink message is not from the kernel")
	}
	return syscall.ParseNetlinkMessage(slices.Clone(c.buffer[:align(n)]))
}

// uninterrupted repeats a call while signals interrupt it.
func uninterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Do sends a request and calls each with the body of each message of type reply in
// the answer. After an error of each, which Do returns, it no longer calls it. The error
// is EINTR if a change has interrupted a dump; see [Retry].
func (c *Conn) Do(r Request, reply uint16, each func(body []byte) error) error {
	sequence, err := c.Send(r)
	if err != nil {
		return err
	}
	a := answer{sequence: sequence, reply: reply, each: each}
	for {
		messages, err := c.Receive()
		if err != nil {
			return err
		}
		for _, m := range messages {
			if last, err := a.take(m); last {
				return err
			}
		}
	}
}

// answer is the answer to one request, as far as it has come.
type answer struct {
	sequence    uint32
	reply       uint16
	each        func(body []byte) error
	failed      error // of each
	interrupted error
}

// take takes the next message, and reports whether it is the last one.
func (a *answer) take(m syscall.NetlinkMessage) (last bool, err error) {
	if m.Header.Seq != a.sequence {
		return false, nil // it answers an earlier request whose answer was not read to its end
	}
	if m.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
		a.interrupted = unix.EINTR
	}
	switch m.Header.Type {
	case unix.NLMSG_DONE, unix.NLMSG_ERROR:
		return true, cmp.Or(a.failed, refusal(m), a.interrupted)
	case a.reply:
		if a.failed == nil {
			a.failed = a.each(m.Data)
		}
		return m.Header.Flags&unix.NLM_F_MULTI == 0, a.failed
	}
	return false, nil
}

// refusal returns the error in the message that ends an answer, with the kernel's
// explanation if the socket asks for it (NETLINK_EXT_ACK): after the error's number and,
// unless it ends a dump, the header of the request.
func refusal(m syscall.NetlinkMessage) error {
	errno := unix.Errno(-int32(U32(m.Data)))
	if errno == 0 {
		return nil
	}
	at := 4
	if m.Header.Type == unix.NLMSG_ERROR {
		at += unix.SizeofNlMsghdr
	}
	if m.Header.Flags&unix.NLM_F_ACK_TLVS == 0 || len(m.Data) < at {
		return errno
	}
	words, err := Attr(m.Data[at:], unix.NLMSGERR_ATTR_MSG)
	if err != nil || words == nil {
		return errno
	}
	return fmt.Errorf("%w: %s", errno, unix.ByteSliceToString(words))
}
