// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// DumpTries is how often a dump is tried while changes interrupt it.
const DumpTries = 32

// Retry repeats a dump that was interrupted by a change, and so may lack some
// objects or have some twice.
func Retry(ctx context.Context, dump func() error) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := dump()
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("netlink dump", err)
		}
		if try == DumpTries {
			return fmt.Errorf("netlink dump: interrupted by changes %d times: %w", try, err)
		}
	}
}

// Gone reports whether an error means that the object or its link does not exist.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
}

// Attrs calls f with the type and the value of each attribute (struct rtattr),
// nested flags taken off.
func Attrs(b []byte, f func(typ uint16, value []byte) error) error {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return fmt.Errorf("netlink attribute of %d bytes in %d", size, len(b))
		}
		typ := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if err := f(typ, b[unix.SizeofRtAttr:size]); err != nil {
			return err
		}
		b = b[min(len(b), align(size)):]
	}
	return nil
}

// Attr returns the value of one attribute; nil if there is none.
func Attr(b []byte, want uint16) (found []byte, err error) {
	err = Attrs(b, func(typ uint16, value []byte) error {
		if typ == want {
			found = value
		}
		return nil
	})
	return found, err
}

// align returns the size with which the next message or attribute starts.
func align(size int) int { return (size + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }

// Append appends an attribute.
func Append(b []byte, typ uint16, value []byte) []byte {
	size := unix.SizeofRtAttr + len(value)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, align(size)-size)...)
}

// String encodes a string as an attribute, with its terminating zero.
func String(typ uint16, value string) []byte { return Append(nil, typ, append([]byte(value), 0)) }

// Number encodes a number as an attribute, in the machine's byte order.
func Number(typ uint16, value uint32) []byte {
	return Append(nil, typ, binary.NativeEndian.AppendUint32(nil, value))
}

// U32 reads a number in the machine's byte order; 0 if there is none.
func U32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
