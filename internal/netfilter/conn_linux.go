// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// bufferSize is room for one transaction, and for the answers to it.
const bufferSize = 8 << 20

// headerSize is the size of struct nfgenmsg, which each message begins with.
const headerSize = nl.SizeofNfgenmsg

// request is a message to a subsystem of netfilter.
func request(subsystem, cmd, flags int, family uint8, attrs ...*nl.RtAttr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(subsystem<<8|cmd, flags)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	for _, attr := range attrs {
		req.AddData(attr)
	}
	return req
}

// text encodes a string as an attribute.
func text(typ int, value string) *nl.RtAttr { return nl.NewRtAttr(typ, nl.ZeroTerminated(value)) }

// dump lists objects: parse returns false for uninteresting ones. The list is empty if
// the kernel lacks the subsystem, or netfilter's netlink.
func dump[T any](ctx context.Context, req *nl.NetlinkRequest, reply uint16, parse func(family uint8, b []byte) (T, bool, error)) (list []T, err error) {
	begin := func() { list = nil }
	err = nlread.Dump(ctx, unix.NETLINK_NETFILTER, req, req.Type&^0xff|reply, begin, func(msg []byte) error {
		if len(msg) < headerSize {
			return fmt.Errorf("netfilter message of %d bytes is too short", len(msg))
		}
		object, ok, err := parse(msg[0], msg[headerSize:])
		if ok {
			list = append(list, object)
		}
		return err
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	return list, remedy.Capabilities(err, "", remedy.NetAdmin)
}

// transaction sends messages of one subsystem as a whole: either all take
// effect or none. The result has the error for each message that the kernel refuses, by
// its index; err is the transaction's.
func transaction(subsystem uint16, msgs []*nl.NetlinkRequest) (refused map[int]error, err error) {
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER) // to nothing: a socket of the thread's namespace
	if err != nil {
		return nil, os.NewSyscallError("netlink socket", err)
	}
	defer socket.Close()
	// Without these (CAP_NET_ADMIN in the first user namespace) there is room
	// for some hundred answers.
	_ = unix.SetsockoptInt(socket.GetFd(), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bufferSize)
	_ = socket.SetReceiveBufferSize(bufferSize, true)
	if err := socket.SetReceiveTimeout(&nl.SocketTimeoutTv); err != nil {
		return nil, err
	}
	mark := func(typ int) *nl.NetlinkRequest {
		req := nl.NewNetlinkRequest(typ, 0)
		req.AddData(&nl.Nfgenmsg{Version: nl.NFNETLINK_V0, ResId: nl.Swap16(subsystem)})
		return req
	}
	var batch []byte
	for i, msg := range append(append([]*nl.NetlinkRequest{mark(unix.NFNL_MSG_BATCH_BEGIN)}, msgs...), mark(unix.NFNL_MSG_BATCH_END)) {
		msg.Seq = uint32(i)
		batch = append(batch, msg.Serialize()...)
	}
	if err := unix.Sendto(socket.GetFd(), batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("netfilter transaction", err)
	}
	return answers(socket, len(msgs))
}

// answers collects the acknowledgements of count messages after the first one, which
// begins the transaction and is answered only if that fails.
func answers(socket *nl.NetlinkSocket, count int) (map[int]error, error) {
	refused := map[int]error{}
	for seen := 0; seen < count; {
		msgs, _, err := socket.Receive()
		if err != nil {
			return refused, os.NewSyscallError("netfilter answer", err)
		}
		for _, m := range msgs {
			at := int(m.Header.Seq)
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 || at > count {
				continue
			}
			errno := unix.Errno(-int32(nlread.U32(m.Data)))
			switch {
			case at == 0 && errno != 0:
				return refused, os.NewSyscallError("netfilter transaction", errno)
			case at == 0:
				continue
			case errno != 0:
				refused[at-1] = errno
			}
			seen++
		}
	}
	return refused, nil
}
