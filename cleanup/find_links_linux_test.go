// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Enough links to be deleted in groups, of whatever sizes.
func TestCLN9_LinksInGroups(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	endpoints(t, 60)
	for i := range 20 {
		run(t, "ip", "link", "set", "dev", fmt.Sprintf("lxc%08x", i), "group", fmt.Sprint(i%3+1))
	}
	veth(t, "cilium_host", "cilium_net") // both ends are listed
	run(t, "ip", "link", "add", "dev", "cilium_vxlan", "type", "vxlan", "id", "5", "dstport", "8472")
	tap(t, "cilium_tap")
	veth(t, "eth0", "eth1")
	run(t, "ip", "link", "set", "dev", "eth0", "group", "1")
	run(t, "ip", "link", "set", "dev", "eth1", "group", "4711")
	twins := func() string { return listing(t, "lo") + listing(t, "eth0") + listing(t, "eth1") }
	before := twins()

	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
	inv := inventory(t, c)
	total := len(inv.Items)
	require.Equal(t, 60*3+4, total, "filters, clsact qdiscs, links")
	removed := map[string]int{}
	c.Progress = func(done, of int, item string, err error) {
		require.NoError(t, err)
		require.Equal(t, total, of)
		removed[item]++
		require.Len(t, removed, done)
	}
	require.NoError(t, c.Remove(context.Background(), inv.Items))
	require.Len(t, removed, total, "each item once")
	require.Equal(t, 3, linkCount(t))
	require.Equal(t, before, twins())
}

// tap makes a link of a kind that is deleted like any other.
func tap(t testing.TB, name string) {
	t.Helper()
	run(t, "ip", "tuntap", "add", "dev", name, "mode", "tap")
}

func TestCancelledSaysWhatIsLeft(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	endpoints(t, 50)
	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
	inv := inventory(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	c.Progress = func(int, int, string, error) { cancel() }
	err := c.Remove(ctx, inv.Items)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "stopped with 118 of 150 items left", "the first 32 links went together")

	_, err = c.Inventory(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, c.Apply(ctx), context.Canceled)
	c.Progress = nil
	apply(t, c)
	require.Equal(t, 1, linkCount(t))
}

// Other links come and go meanwhile, which interrupts dumps.
func TestCLN9_Churn(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	endpoints(t, 30)
	stop := churn(t)
	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
	for range 15 {
		inv := listed(t, context.Background(), c)
		require.Len(t, inv.Items, 90)
	}
	apply(t, c)
	stop()
	require.Equal(t, 1, linkCount(t))
}

// churn makes and deletes foreign links in the test's network namespace, on another thread,
// until end is called.
func churn(t testing.TB) (end func()) {
	t.Helper()
	ns, err := netns.Get()
	require.NoError(t, err)
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in another namespace
		defer ns.Close()
		result <- func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			for {
				link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, PeerName: "other1"}
				if err := errors.Join(netlink.LinkAdd(link), netlink.LinkDel(link)); err != nil {
					return err
				}
				select {
				case <-stop:
					return nil
				default:
				}
			}
		}()
	}()
	return func() {
		close(stop)
		require.NoError(t, <-result)
	}
}
