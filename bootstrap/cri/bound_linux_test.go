// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/testns"
)

// A pod in the host's network namespace, with CAP_NET_ADMIN, can send to the socket that
// asks the kernel.
func TestSEC11_OnlyTheKernelSaysWhoListens(t *testing.T) {
	testns.Root(t)
	open := func() (fd int, address *unix.SockaddrNetlink) {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
		require.NoError(t, unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
		name, err := unix.Getsockname(fd)
		require.NoError(t, err)
		return fd, name.(*unix.SockaddrNetlink)
	}
	ours, address := open()
	his, _ := open()
	const inode = 1<<32 - 3
	type message struct {
		unix.NlMsghdr
		Kind, Inode, Cookie1, Cookie2 uint32
		Attr                          unix.NlAttr
		File, Device                  uint32
	}
	m := message{Inode: inode, Attr: unix.NlAttr{Len: 12, Type: 1}}
	m.NlMsghdr = unix.NlMsghdr{Len: uint32(binary.Size(m)), Type: unix.SOCK_DIAG_BY_FAMILY}
	text, err := binary.Append(nil, binary.NativeEndian, m)
	require.NoError(t, err)
	require.True(t, cri.ParseBound(text[unix.NLMSG_HDRLEN:]))
	require.NoError(t, unix.Sendto(his, text, 0, address))

	require.NoError(t, cri.Dump(t.Context(), ours, func(said uint64) { require.NotEqual(t, uint64(inode), said) }))
}

func FuzzWhoListens(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Add(append(make([]byte, 16), 12, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0))
	f.Fuzz(func(_ *testing.T, message []byte) { cri.ParseBound(message) })
}
