// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

func setXDP(t testing.TB, dev string, prog *ebpf.Program, flags int) {
	t.Helper()
	l, err := netlink.LinkByName(dev)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetXdpFdWithFlags(l, prog.FD(), flags))
}

func xdpLink(t testing.TB, dev string, prog *ebpf.Program, flags link.XDPAttachFlags) link.Link {
	t.Helper()
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: index(t, dev), Flags: flags})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// The same program at the same index: through bpf_links in other namespaces, through netlink
// here.
func TestCLN6_XDPByLinkElsewhereAndByNetlinkHere(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	prog := program(t, ebpf.XDP, "cil_xdp_entry")
	here, err := netns.Get()
	require.NoError(t, err)
	defer here.Close()
	eth0 := func() {
		run(t, "ip", "link", "add", "dev", "eth0", "index", "77", "type", "veth", "peer", "name", "eth1")
	}
	eth0()
	clean := everything(t)
	for elsewhere := 1; elsewhere <= 2; elsewhere++ {
		other, err := netns.New()
		require.NoError(t, err)
		defer other.Close()
		eth0()
		xdpLink(t, "eth0", prog, 0)
		before := everything(t)

		require.NoError(t, netns.Set(here))
		for _, flags := range []int{unix.XDP_FLAGS_DRV_MODE, unix.XDP_FLAGS_SKB_MODE} {
			setXDP(t, "eth0", prog, flags)
			inv := inventory(t, bpfState(t))
			require.Len(t, inv.Items, 1)
			require.NotContains(t, inv.Items[0].Detail, "bpf_link", "it is another namespace's")
			apply(t, bpfState(t))
			require.Equal(t, clean, everything(t))
		}

		// It was attached through netlink when listed, and through a bpf_link when removed.
		setXDP(t, "eth0", prog, unix.XDP_FLAGS_DRV_MODE)
		inv := inventory(t, bpfState(t))
		run(t, "ip", "link", "set", "dev", "eth0", "xdpdrv", "off")
		l := xdpLink(t, "eth0", prog, link.XDPDriverMode)
		dirty := everything(t)
		require.ErrorContains(t, bpfState(t).Remove(context.Background(), inv.Items), "cannot tell which one is in this namespace")
		require.Equal(t, dirty, everything(t))
		require.NoError(t, l.Close())

		require.NoError(t, netns.Set(other))
		require.Equal(t, before, everything(t))
		require.NoError(t, netns.Set(here))
	}
}
