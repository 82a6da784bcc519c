// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Watch calls changed once at the beginning, and then each time that links have
// appeared, or have got another name, in the network namespace that the calling thread
// is in at the beginning. It returns when ctx ends. It changes nothing: have changed
// start what applies a [DropIn] or [Settings] again, such as a reconcile.Loop. It
// needs no capability.
func Watch(ctx context.Context, changed func()) error {
	events, err := linkEvents()
	if err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	defer events.Close()
	stop := context.AfterFunc(ctx, func() { _ = events.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	changed()
	names := map[int32]string{}
	buffer := make([]byte, 64<<10)
	for {
		n, err := events.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("watch links: %w", context.Cause(ctx))
		case errors.Is(err, syscall.ENOBUFS): // some events are lost
			clear(names)
			changed()
		case err != nil:
			return fmt.Errorf("watch links: %w", err)
		case renamed(names, buffer[:n]):
			changed()
		}
	}
}

// linkEvents is a socket, opened by the calling thread, that tells of every link.
func linkEvents() (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: 1 << (syscall.RTNLGRP_LINK - 1)}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), "rtnetlink"), nil
}

// renamed keeps names, by index, and reports whether events have given one of them. It
// is true of the first event of each link.
func renamed(names map[int32]string, events []byte) (any bool) {
	messages, err := syscall.ParseNetlinkMessage(events)
	if err != nil {
		return true
	}
	for _, m := range messages {
		index, name := linkOf(m)
		switch {
		case m.Header.Type == syscall.RTM_DELLINK:
			delete(names, index)
		case m.Header.Type == syscall.RTM_NEWLINK && name != "" && names[index] != name:
			names[index], any = name, true
		}
	}
	return any
}

func linkOf(m syscall.NetlinkMessage) (index int32, name string) {
	attrs, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil || len(m.Data) < syscall.SizeofIfInfomsg {
		return 0, ""
	}
	for _, a := range attrs {
		if a.Attr.Type == syscall.IFLA_IFNAME {
			name = strings.TrimRight(string(a.Value), "\x00")
		}
	}
	return int32(binary.NativeEndian.Uint32(m.Data[4:])), name // struct ifinfomsg
}
