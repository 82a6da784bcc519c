// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rtnl is one netlink socket, in the network namespace of the thread that
// opened it, used for every request. It is a plain one: tens of thousands of
// requests cost half of what they cost through the library.
type rtnl struct {
	fd  int
	seq uint32
	buf []byte
}

const (
	// rtnlTimeout is how long the kernel may take for one answer.
	rtnlTimeout = time.Minute

	// rtnlBuffer is more than the kernel puts into one datagram.
	rtnlBuffer = 64 << 10
)

func openNetlink(proto int) (*rtnl, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	timeout := unix.NsecToTimeval(int64(rtnlTimeout))
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1), // the kernel's own words for a refusal
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout),
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	return &rtnl{fd: fd, buf: make([]byte, rtnlBuffer)}, nil
}

func (r *rtnl) close() { unix.Close(r.fd) }

// execute sends a request and returns the messages of the type reply in the
// answer, which ends with an acknowledgement or the end of a dump: every
// request asks for one of them.
func (r *rtnl) execute(typ, flags int, reply uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	if err := r.send(typ, flags, data); err != nil {
		return nil, err
	}
	a := answer{seq: r.seq, reply: reply}
	for !a.complete {
		n, from, err := unix.Recvfrom(r.fd, r.buf, unix.MSG_TRUNC)
		kernel, ok := from.(*unix.SockaddrNetlink)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, os.NewSyscallError("recvfrom", err)
		case n > len(r.buf):
			return nil, fmt.Errorf("netlink answer of %d bytes is cut", n)
		case !ok || kernel.Pid != 0:
			continue // from another process
		}
		if err := a.read(r.buf[:n]); err != nil {
			return nil, err
		}
	}
	if a.err == nil && a.interrupted {
		a.err = nl.ErrDumpInterrupted
	}
	return a.msgs, a.err
}

func (r *rtnl) send(typ, flags int, data []nl.NetlinkRequestData) error {
	r.seq++
	b := make([]byte, unix.SizeofNlMsghdr, 128)
	for _, d := range data {
		b = append(b, d.Serialize()...)
	}
	order := nl.NativeEndian()
	order.PutUint32(b, uint32(len(b)))
	order.PutUint16(b[4:], uint16(typ))
	order.PutUint16(b[6:], uint16(flags|unix.NLM_F_REQUEST))
	order.PutUint32(b[8:], r.seq)
	for {
		err := unix.Sendto(r.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendto", err)
		}
	}
}

// answer collects what the kernel answers to one request.
type answer struct {
	seq         uint32
	reply       uint16
	msgs        [][]byte
	interrupted bool
	complete    bool
	err         error // the kernel's refusal
}

// read reads one datagram, which it does not keep.
func (a *answer) read(b []byte) error {
	order := nl.NativeEndian()
	copied := false
	for len(b) >= unix.SizeofNlMsghdr && !a.complete {
		size := int(order.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return fmt.Errorf("netlink message of %d bytes in %d", size, len(b))
		}
		typ, flags := order.Uint16(b[4:]), order.Uint16(b[6:])
		if mine := order.Uint32(b[8:]) == a.seq; mine {
			a.interrupted = a.interrupted || flags&unix.NLM_F_DUMP_INTR != 0
			switch typ {
			case unix.NLMSG_ERROR, unix.NLMSG_DONE:
				a.complete, a.err = true, refusal(b[unix.SizeofNlMsghdr:size], typ, flags)
			case a.reply:
				if !copied {
					b, copied = bytes.Clone(b), true
				}
				a.msgs = append(a.msgs, b[unix.SizeofNlMsghdr:size:size])
			}
		}
		b = b[min(len(b), (size+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)):]
	}
	return nil
}

// refusal returns the error of an acknowledgement or of the end of a dump, with
// what the kernel says of it.
func refusal(b []byte, typ, flags uint16) error {
	errno := unix.Errno(-int32(u32(b)))
	if errno == 0 {
		return nil
	}
	at := 4
	if typ == unix.NLMSG_ERROR {
		at += unix.SizeofNlMsghdr // of the request
		if flags&unix.NLM_F_CAPPED == 0 && len(b) > at {
			at = 4 + (int(u32(b[4:]))+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)
		}
	}
	text := ""
	if flags&unix.NLM_F_ACK_TLVS != 0 && at >= 4 && at < len(b) {
		_ = attrs(b[at:], func(typ uint16, value []byte) error {
			if typ == unix.NLMSGERR_ATTR_MSG {
				text = unix.ByteSliceToString(value)
			}
			return nil
		})
	}
	if text == "" {
		return errno
	}
	return fmt.Errorf("%w: %s", errno, text)
}

// change sends a request that changes something and waits for the answer.
func (r *rtnl) change(typ int, data ...nl.NetlinkRequestData) error {
	_, err := r.execute(typ, unix.NLM_F_ACK, 0, data...)
	return err
}

// get asks for one object; the answer is its message. The acknowledgement is
// asked for because for some objects that are not there the kernel sends
// nothing else.
func (r *rtnl) get(typ int, reply uint16, data ...nl.NetlinkRequestData) ([]byte, error) {
	msgs, err := r.execute(typ, unix.NLM_F_ACK, reply, data...)
	if err == nil && len(msgs) == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, err
	}
	return msgs[0], nil
}

// dumpTries bounds how often a dump is repeated that a change interrupted.
const dumpTries = 32

// dump lists objects. A dump that was interrupted by a change, and so may
// lack some or show some twice, is repeated.
func (r *rtnl) dump(ctx context.Context, typ int, reply uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	return retryDump(ctx, func() ([][]byte, error) {
		return r.execute(typ, unix.NLM_F_DUMP, reply, data...)
	})
}

func retryDump[T any](ctx context.Context, dump func() (T, error)) (T, error) {
	var none T
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		list, err := dump()
		interrupted := errors.Is(err, nl.ErrDumpInterrupted) || errors.Is(err, unix.EINTR)
		if !interrupted {
			return list, os.NewSyscallError("netlink dump", err)
		}
		if try == dumpTries {
			return none, fmt.Errorf("netlink dump: interrupted by changes %d times: %w", try, err)
		}
	}
}

// gone reports whether an error says that the object or its link is not there.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
}

// attrs calls f with the type and the value of each attribute (struct rtattr),
// nested flags taken off.
func attrs(b []byte, f func(typ uint16, value []byte) error) error {
	for len(b) >= unix.SizeofRtAttr {
		size := int(nl.NativeEndian().Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return fmt.Errorf("netlink attribute of %d bytes in %d", size, len(b))
		}
		typ := nl.NativeEndian().Uint16(b[2:]) & nl.NLA_TYPE_MASK
		if err := f(typ, b[unix.SizeofRtAttr:size]); err != nil {
			return err
		}
		b = b[min(len(b), (size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return nil
}

// u32 reads a number in the machine's byte order; 0 if there is none.
func u32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return nl.NativeEndian().Uint32(b)
}

// u8 reads one byte; 0 if there is none.
func u8(b []byte) uint8 {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}
