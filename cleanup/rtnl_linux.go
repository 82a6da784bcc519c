// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rtnl is one netlink socket, in the network namespace of the thread that
// opened it, used for every request.
type rtnl struct {
	handle *nl.SocketHandle
	proto  int // NETLINK_ROUTE, or another protocol
}

// rtnlTimeout is how long the kernel may take for one answer.
const rtnlTimeout = time.Minute

func openNetlink(proto int) (*rtnl, error) {
	sock, err := nl.Subscribe(proto)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	// The kernel's own words for a refusal; kernels before 4.12 have none.
	_ = sock.SetExtAck(true)
	timeout := unix.NsecToTimeval(int64(rtnlTimeout))
	if err := errors.Join(sock.SetSendTimeout(&timeout), sock.SetReceiveTimeout(&timeout)); err != nil {
		sock.Close()
		return nil, fmt.Errorf("netlink socket timeouts: %w", err)
	}
	return &rtnl{&nl.SocketHandle{Socket: sock}, proto}, nil
}

func (r *rtnl) close() { r.handle.Close() }

func (r *rtnl) execute(typ, flags int, reply uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	req := nl.NewNetlinkRequest(typ, flags)
	req.Sockets = map[int]*nl.SocketHandle{r.proto: r.handle}
	for _, d := range data {
		req.AddData(d)
	}
	return req.Execute(r.proto, reply)
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
