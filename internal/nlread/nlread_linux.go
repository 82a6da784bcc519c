// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlread

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// dumpTries is how often a dump is tried while changes interrupt it.
const dumpTries = 32

// Dump calls each with the body of each message of type reply in the answer to a request, as
// they come, so that a long list needs no memory for all of them. It calls begin first, and
// once more whenever a change interrupts the dump: then all come again. After an error of
// each, which Dump returns, it no longer calls it. Unless the request has a socket, it uses
// one of the calling thread's network namespace.
func Dump(ctx context.Context, proto int, req *nl.NetlinkRequest, reply uint16, begin func(), each func(body []byte) error) (err error) {
	req.Flags |= unix.NLM_F_DUMP
	for range dumpTries {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin()
		var failed error
		err = req.ExecuteIter(proto, reply, func(body []byte) bool {
			failed = each(body)
			return failed == nil
		})
		if failed != nil || !errors.Is(err, nl.ErrDumpInterrupted) {
			return cmp.Or(failed, os.NewSyscallError("netlink dump", err))
		}
	}
	return fmt.Errorf("netlink dump: interrupted by changes %d times: %w", dumpTries, err)
}

// Gone reports whether an error means that the object or its link does not exist.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
}

// Except returns err unless it is one of the others.
func Except(err error, others ...error) error {
	if slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) }) {
		return nil
	}
	return err
}

// Attributes calls each with the type and the value of each attribute (struct rtattr), nested
// flags taken off. Package nl would make lists of them, and panic at a last one without padding.
func Attributes(b []byte, each func(typ uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return fmt.Errorf("netlink attribute of %d bytes in %d", size, len(b))
		}
		each(binary.NativeEndian.Uint16(b[2:])&nl.NLA_TYPE_MASK, b[unix.SizeofRtAttr:size])
		b = b[min(len(b), (size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return nil
}

// Values returns the values of attributes by their types.
func Values(b []byte) (map[uint16][]byte, error) {
	values := map[uint16][]byte{}
	err := Attributes(b, func(typ uint16, value []byte) { values[typ] = value })
	return values, err
}

// Value returns the value of one attribute, or nil.
func Value(b []byte, want uint16) (found []byte, err error) {
	err = Attributes(b, func(typ uint16, value []byte) {
		if typ == want {
			found = value
		}
	})
	return found, err
}

// U32 reads a number in the machine's byte order; 0 if there is none.
func U32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
