// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// The kernel has one value, and two files that show it: the second one rounds, or counts in
// another unit.
func TestSYS2_TwoNamesOfOneValueAreOneObject(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for _, names := range [][2]sysctl.Setting{
		{setTo("net.ipv4.ip_forward", "1"), setTo("net.ipv4.conf.all.forwarding", "0")},
		{setTo("net.ipv4.neigh.lo.unres_qlen", "7"), setTo("net.ipv4.neigh.lo.unres_qlen_bytes", "9999")},
		{setTo("net.ipv4.neigh.lo.retrans_time", "80"), setTo("net.ipv4.neigh.lo.retrans_time_ms", "1500")},
		{setTo("net.ipv6.neigh.lo.base_reachable_time", "7"), setTo("net.ipv6.neigh.lo.base_reachable_time_ms", "1500")},
		{setTo("net.ipv6.route.gc_min_interval", "3"), setTo("net.ipv6.route.gc_min_interval_ms", "1500")},
	} {
		now := func() (now [2]string) {
			for i, s := range names {
				var err error
				now[i], err = sysctl.Kernel{}.Get(s.Key)
				require.NoError(t, err)
			}
			return now
		}
		dir, before := filepath.Join(t.TempDir(), "state"), now()
		for i, wanted := range names {
			first, second := newNeighbour(t, dir, "first", nil), newNeighbour(t, dir, "second", nil)
			first.apply(wanted)
			require.Equal(t, wanted.Value, now()[i])
			_, err := second.settings(names[1-i]).Check(t.Context())
			require.ErrorIs(t, err, ledger.ErrConflict, "%s", names[1-i])
			first.apply(names[1-i])
			require.Equal(t, names[1-i].Value, now()[1-i])
			first.uninstall()
			require.Equal(t, before, now(), "to the byte, in whichever unit it was set")
			require.NoDirExists(t, dir)
		}
	}
}

// The value of a link is that link's: another one that gets its name has others.
func TestPLAN6_ALinkThatGotTheNameOfAnotherIsLeftAlone(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	const key = "net.ipv4.conf.lxc1.rp_filter"
	veth(t, "lxc1", "peer")
	s := recordedValues{sysctl.Settings{Values: []sysctl.Setting{setTo(key, "2")}}, temp(t)}
	require.NoError(t, s.Apply(t.Context()))
	link, err := netlink.LinkByName("lxc1")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(link))
	veth(t, "lxc1", "peer")
	require.NoError(t, sysctl.Kernel{}.Set(setTo(key, "2"))) // by its owner
	require.Empty(t, checkRevert(t, s))
	require.NoError(t, s.Revert(t.Context()))
	value, err := sysctl.Kernel{}.Get(key)
	require.NoError(t, err)
	require.Equal(t, "2", value)
}
