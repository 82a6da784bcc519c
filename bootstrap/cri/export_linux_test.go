// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import "context"

// Dump yields the inodes of the listening sockets that the kernel lists over a netlink socket.
func Dump(ctx context.Context, fd int, yield func(inode uint64)) error {
	return dump(ctx, fd, func(b bound) bool { yield(b.socket); return true })
}

// ParseBound parses one socket's answer.
func ParseBound(message []byte) (ok bool) {
	_, ok = parse(message)
	return ok
}
