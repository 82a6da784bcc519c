// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/nlmsg"
	"github.com/slipway-dev/slipway/internal/testns"
)

// The error includes the kernel's message at the end of a dump or a change.
func TestRefusals(t *testing.T) {
	testns.Enter(t, testns.Net)
	c, err := rtnl.Open()
	require.NoError(t, err)
	defer c.Close()
	refused := c.Refused(t.Context())
	require.ErrorIs(t, refused, unix.ENOENT)
	require.ErrorContains(t, refused, "no such file or directory: ")
	route := []byte{unix.AF_INET, 8, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0}
	route = nlmsg.Append(route, unix.RTA_DST, []byte{10, 0, 0, 1}) // with a prefix of 8 bits
	require.EqualError(t, c.AppendRoute(string(route)), "invalid argument: Invalid prefix for given prefix length")
}
