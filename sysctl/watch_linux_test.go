// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// The watch runs on the test's own thread; its callback changed makes the next link.
func TestSYS7_WatchTellsOfLinksThatAppearAndOfNewNames(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	d := cilium(recordedFile{DropIn: sysctl.DropIn{Dir: t.TempDir()}})
	rpFilter := func(link string) string {
		value, err := sysctl.Kernel{}.Get(sysctl.Key("net.ipv4.conf." + link + ".rp_filter"))
		require.NoError(t, err)
		return value
	}
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: "net.ipv4.conf.default.rp_filter", Value: "2"}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	steps := []func() (done bool){
		func() bool { veth(t, "lxc1", "tmp1"); return true },
		func() bool {
			if rpFilter("lxc1") != "0" {
				return false
			}
			link, err := netlink.LinkByName("tmp1")
			require.NoError(t, err)
			require.Equal(t, "2", rpFilter("tmp1"))
			require.NoError(t, netlink.LinkSetDown(link)) // required by older kernels
			require.NoError(t, netlink.LinkSetName(link, "lxc2"))
			return true
		},
		func() bool { return rpFilter("lxc2") == "0" },
	}
	err := sysctl.Watch(ctx, func() {
		require.NoError(t, d.Apply(ctx))
		if steps[0]() {
			steps = steps[1:]
		}
		if len(steps) == 0 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, steps)
}
