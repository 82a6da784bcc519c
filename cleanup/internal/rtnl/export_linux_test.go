// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// Used by the fuzz target's messages.
const (
	TCAKind          = tcaKind
	TCAOptions       = tcaOptions
	TCAChain         = tcaChain
	TCABPFName       = tcaBPFName
	XFRMAMark        = xfrmaMark
	SizeofPolicyInfo = sizeofPolicyInfo
	SizeofStateInfo  = sizeofStateInfo
)

// Called by the fuzz target.
var (
	ParseLink   = func(b []byte) error { _, err := parseLink(b); return err }
	ParseFilter = func(b []byte) error { _, err := parseFilter(b); return err }
	ParseQdisc  = func(b []byte) error { _, err := parseQdisc(b); return err }
	ParseXDP    = func(b []byte) error { _, err := parseXDP(b); return err }
	ParseRoute  = func(b []byte) error {
		r, err := parseRoute(b)
		if err == nil {
			r.DeleteRequest()
			r.Request(nil)
		}
		return err
	}
	ParseRule   = func(b []byte) error { _, err := parseRule(b); return err }
	ParsePolicy = func(b []byte) error { _, err := parsePolicy(b); return err }
	ParseState  = func(b []byte) error { _, err := parseState(b); return err }
)

// Refused requests a dump that the kernel refuses with a message.
func (c *Conn) Refused(ctx context.Context) error {
	const strict = 12 // NETLINK_GET_STRICT_CHK
	if err := c.socket.Set(unix.SOL_NETLINK, strict, 1); err != nil {
		return err
	}
	_, err := list(ctx, c, unix.RTM_GETROUTE, parseRoute,
		familyHeader(unix.AF_INET), nlmsg.Number(unix.RTA_TABLE, 12345))
	return err
}
