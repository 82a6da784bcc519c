// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// xfrm returns ip's listing of policies and states, without timers.
func xfrm(t testing.TB) string {
	t.Helper()
	out := run(t, "ip", "-d", "xfrm", "policy", "show") + run(t, "ip", "-d", "xfrm", "state", "show")
	return regexp.MustCompile(`add [-0-9: ]+ use .*`).ReplaceAllString(out, "")
}

// keepStates keeps states that wait for their keys: otherwise they expire after half a minute
// (net.core.xfrm_acq_expires), possibly within a test.
func keepStates(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/net/core/xfrm_acq_expires", []byte("86400"), 0))
}

func xfrmOnly() cleanup.Leftovers {
	return cleanup.Leftovers{Ownership: cleanup.Ownership{XFRM: cleanup.CiliumOnRequest().XFRM}, Scope: cleanup.AllState}
}

func TestCLN2_XFRM(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	keepStates(t)
	// A state that waits for its keys, so that the kernel needs no ESP.
	state := func(src, dst, spi, mark string) {
		ip(t, "xfrm state allocspi src "+src+" dst "+dst+" proto esp reqid 1 mode tunnel"+mark+" min "+spi+" max "+spi)
	}
	policy := func(src, dst, dir, mark string) {
		ip(t, "xfrm policy add src "+src+" dst "+dst+" dir "+dir+mark+" tmpl src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel")
	}
	// Another VPN's states, without a mark and with other marks.
	state("10.1.0.1", "10.1.0.2", "0x10", "")
	state("10.1.0.1", "10.1.0.2", "0x11", " mark 0x42 mask 0xffffffff")
	state("10.1.0.1", "10.1.0.2", "0x12", " mark 0xd00 mask 0x100")      // the other bits do not count
	state("10.1.0.1", "10.1.0.2", "0x13", " mark 0xd42 mask 0xffffffff") // equal to another's number by chance
	state("10.1.0.1", "10.1.0.2", "0x14", " mark 0xe00 mask 0xffffffff")
	state("10.1.0.1", "10.1.0.2", "0x15", " mark 0x3d00 mask 0xff00")
	state("10.1.0.1", "10.1.0.2", "0x16", " mark 0x12340c00 mask 0xffff0f00")
	policy("10.1.0.0/24", "10.4.0.0/24", "out", " mark 0xe42 mask 0xfff")
	policy("10.1.0.0/24", "10.2.0.0/24", "out", "")
	policy("10.1.0.0/24", "10.2.0.0/24", "fwd", " mark 0x42 mask 0xffffffff")
	policy("fd01::/64", "fd02::/64", "in", "")
	before := xfrm(t)

	state("10.0.0.1", "10.0.0.2", "0x3", " mark 0xd00 mask 0xf00")
	state("10.0.0.1", "10.0.0.2", "0x4", " mark 0x12343e00 mask 0xffffff00")
	state("10.0.0.1", "10.0.0.2", "0x6", " mark 0x12340d00 mask 0xffff0f00")
	state("fd00::1", "fd00::2", "0x5", " mark 0x3e00 mask 0xff00")
	policy("0.0.0.0/0", "10.3.0.0/24", "out", " mark 0x12343e00 mask 0xffffff00")
	policy("10.1.0.0/24", "10.2.0.0/24", "out", " mark 0x3e00 mask 0xff00") // beside the foreign one
	policy("::/0", "fd03::/64", "in", " mark 0xd00 mask 0xf00")
	ip(t, "xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 dir out action block mark 0xe00 mask 0xf00")
	dirty := xfrm(t)
	require.NotEqual(t, before, dirty)

	c := netOnly()
	require.Empty(t, inventory(t, c).Items, "only on request")
	c = xfrmOnly()
	inv := inventory(t, c)
	require.Equal(t, dirty, xfrm(t))
	policies := ofKind("xfrm policy", inv.Items)
	require.Len(t, policies, 4)
	require.Contains(t, strings.Join(policies, "\n"), "out from 10.1.0.0/24 to 10.2.0.0/24 index ")
	require.ElementsMatch(t, []string{
		"from 10.0.0.1 to 10.0.0.2 proto esp spi 0x3",
		"from 10.0.0.1 to 10.0.0.2 proto esp spi 0x4",
		"from 10.0.0.1 to 10.0.0.2 proto esp spi 0x6",
		"from fd00::1 to fd00::2 proto esp spi 0x5",
	}, ofKind("xfrm state", inv.Items))
	require.Equal(t, "xfrm policy", inv.Items[0].Kind, "policies go first")

	apply(t, c)
	require.Equal(t, before, xfrm(t))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

func TestCLN4_XFRMWithoutCapability(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	keepStates(t)
	ip(t, "xfrm state allocspi src 10.0.0.1 dst 10.0.0.2 proto esp mode tunnel mark 0xd00 mask 0xf00 min 3 max 3")
	inv := inventory(t, xfrmOnly())
	require.Len(t, inv.Items, 1)
	dropCapability(t, unix.CAP_NET_ADMIN)
	require.ErrorContains(t, xfrmOnly().Remove(context.Background(), inv.Items), inv.Items[0].String()+": operation not permitted (needs CAP_NET_ADMIN)")
	_, err := xfrmOnly().Inventory(context.Background())
	require.ErrorContains(t, err, "list xfrm policy: netlink dump: operation not permitted (needs CAP_NET_ADMIN)")
}
