// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// bound is a listening unix socket and the file that it is bound to, as the kernel
// reports them for each socket (unix_diag_dump in net/unix/diag.c). Unlike in
// /proc/net/unix, names have a length.
type bound struct {
	socket       uint64 // the inode of the socket, not that of its file
	name         string // the path it was bound to, in any mount namespace
	file, device uint32 // the file's inode, and its file system's device as in the kernel
	holders      []string
}

// isTo reports whether it is bound to the file that f refers to. Some file systems, such
// as btrfs, report a device other than their own; there the name must lead to the file as
// well.
func (b bound) isTo(h host, f *os.File) bool {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || uint32(st.Ino) != b.file {
		return false
	}
	const minorBits = 20 // MKDEV in linux/kdev_t.h
	return unix.Major(uint64(st.Dev))<<minorBits|unix.Minor(uint64(st.Dev)) == b.device || h.isAt(b.name, f)
}

// diagRequest asks for all listening sockets: struct nlmsghdr, and unix_diag_req of
// linux/unix_diag.h.
type diagRequest struct {
	unix.NlMsghdr
	Family, _     uint8
	_             uint16
	States, Inode uint32
	Show          uint32
	_             [2]uint32
}

func allListening() diagRequest {
	const listen, showName, showFile = 10, 1 << 0, 1 << 1 // TCP_LISTEN, UDIAG_SHOW_NAME, UDIAG_SHOW_VFS
	r := diagRequest{Family: unix.AF_UNIX, States: 1 << listen, Show: showName | showFile}
	r.NlMsghdr = unix.NlMsghdr{Len: uint32(binary.Size(r)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP}
	return r
}

// bound lists the listening sockets that are bound to files, in the network namespace of
// pid 1.
func (p *processes) bound(ctx context.Context) iter.Seq2[bound, error] {
	return func(yield func(bound, error) bool) {
		ended := false
		fd, err := p.diag(ctx)
		if err == nil {
			defer unix.Close(fd)
			err = dump(ctx, fd, func(b bound) bool { ended = !yield(b, nil); return !ended })
		}
		switch {
		case ended:
		case ctx.Err() != nil:
			yield(bound{}, context.Cause(ctx))
		case err != nil:
			yield(bound{}, fmt.Errorf("%w: ask the kernel which sockets do: %w", ErrUnproven, err))
		}
	}
}

// diag opens a netlink socket in the network namespace of pid 1.
func (p *processes) diag(ctx context.Context) (fd int, err error) {
	first := filepath.Join(p.proc, "1")
	theirs, err := os.Stat(filepath.Join(first, "ns/net"))
	if err != nil {
		return -1, unreadable(err)
	}
	open := func(context.Context) (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		return withoutDiag(os.NewSyscallError("socket", err))
	}
	if own, err := os.Stat("/proc/thread-self/ns/net"); err == nil && os.SameFile(own, theirs) {
		err = open(ctx)
		return fd, err
	}
	err = hostns.Do(ctx, first, hostns.Net, open)
	return fd, err
}

// dump sends the request, and yields sockets until yield returns false.
func dump(ctx context.Context, fd int, yield func(bound) bool) error {
	request, err := binary.Append(nil, binary.NativeEndian, allListening())
	if err == nil {
		err = os.NewSyscallError("sendto", unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	}
	if err != nil {
		return err
	}
	answer := make([]byte, 64<<10) // more than the kernel sends at once
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(fd, answer, 0)
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
			continue // from a process with CAP_NET_ADMIN, such as a pod's in the host's network
		}
		messages, err := syscall.ParseNetlinkMessage(answer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				return refusal(m.Data)
			}
			if b, ok := parse(m.Data); ok && !yield(b) {
				return nil
			}
		}
	}
	return context.Cause(ctx)
}

// refusal is the error in a struct nlmsgerr.
func refusal(message []byte) error {
	if len(message) < 4 {
		return errors.New("netlink: an error without a number")
	}
	return withoutDiag(os.NewSyscallError("netlink", unix.Errno(-int32(binary.NativeEndian.Uint32(message)))))
}

// withoutDiag adds to err the module that a kernel without an answer lacks.
func withoutDiag(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOENT) {
		return remedy.Add(err, "needs the kernel's module unix_diag")
	}
	return err
}

// parse reads a struct unix_diag_msg with its attributes (linux/unix_diag.h). ok is false
// for a socket that is bound to no file.
func parse(message []byte) (b bound, ok bool) {
	const inodeAt, size, name, file = 4, 16, 0, 1 // UNIX_DIAG_NAME, UNIX_DIAG_VFS
	if len(message) < size {
		return b, false
	}
	b.socket = uint64(binary.NativeEndian.Uint32(message[inodeAt:]))
	for rest := message[size:]; len(rest) >= unix.SizeofNlAttr; {
		length := int(binary.NativeEndian.Uint16(rest))
		if length < unix.SizeofNlAttr || length > len(rest) {
			return b, false
		}
		value := rest[unix.SizeofNlAttr:length]
		switch kind := binary.NativeEndian.Uint16(rest[2:]); {
		case kind == name:
			b.name = string(bytes.TrimSuffix(value, []byte{0}))
		case kind == file && len(value) == 8:
			b.file, b.device, ok = binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:]), true
		}
		rest = rest[min((length+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1), len(rest)):]
	}
	return b, ok
}
