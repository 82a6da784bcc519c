// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// timeout is how long the kernel may take for one answer.
const timeout = time.Minute

// Open opens a socket in the network namespace of the calling thread.
func Open(proto int) (*nl.SocketHandle, error) {
	sock, err := nl.Subscribe(proto)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	limit := unix.NsecToTimeval(int64(timeout))
	if err := errors.Join(sock.SetSendTimeout(&limit), sock.SetReceiveTimeout(&limit)); err != nil {
		sock.Close()
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	return &nl.SocketHandle{Socket: sock}, nil
}

// DumpTries is how often a dump is tried that changes interrupt.
const DumpTries = 32

// Retry repeats a dump that was interrupted by a change, and so may lack some
// objects or have some twice.
func Retry[T any](ctx context.Context, dump func() (T, error)) (T, error) {
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
		if try == DumpTries {
			return none, fmt.Errorf("netlink dump: interrupted by changes %d times: %w", try, err)
		}
	}
}

// Gone reports whether an error says that the object or its link is not there.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
}

// Attrs calls f with the type and the value of each attribute (struct rtattr),
// nested flags taken off.
func Attrs(b []byte, f func(typ uint16, value []byte) error) error {
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

// Attr returns the value of one attribute; nil if it is not there.
func Attr(b []byte, want uint16) (found []byte, err error) {
	err = Attrs(b, func(typ uint16, value []byte) error {
		if typ == want {
			found = value
		}
		return nil
	})
	return found, err
}

// Append appends an attribute.
func Append(b []byte, typ uint16, value []byte) []byte {
	size := unix.SizeofRtAttr + len(value)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, (4-size%4)%4)...)
}

// U32 reads a number in the machine's byte order; 0 if there is none.
func U32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return nl.NativeEndian().Uint32(b)
}

// Raw is a message that is sent as it is.
type Raw string

// Len returns the length in bytes.
func (m Raw) Len() int { return len(m) }

// Serialize returns the bytes.
func (m Raw) Serialize() []byte { return []byte(m) }
