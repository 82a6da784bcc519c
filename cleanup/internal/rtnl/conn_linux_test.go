// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/testns"
)

// The error of a change includes the kernel's message.
func TestRefusals(t *testing.T) {
	testns.Enter(t, testns.Net)
	var c rtnl.Conn
	defer c.Close()
	route := []byte{unix.AF_INET, 8, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0}
	route = append(route, nl.NewRtAttr(unix.RTA_DST, []byte{10, 0, 0, 1}).Serialize()...) // with a prefix of 8 bits
	require.EqualError(t, c.AppendRoute(string(route)), "invalid argument: Invalid prefix for given prefix length")
}
