// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// endpoints makes n endpoint links, each with a clsact and a filter, through one netlink
// handle.
func endpoints(t testing.TB, n int) {
	t.Helper()
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer h.Close()
	prog := program(t, ebpf.SchedCLS, "cil_from_contai")
	for i := range n {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("lxc%08x", i)}, PeerName: fmt.Sprintf("p%08x", i)}
		require.NoError(t, h.LinkAdd(veth))
		require.NoError(t, h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: veth.Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}))
		require.NoError(t, h.FilterAdd(&netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: veth.Index, Parent: ingress, Handle: 1, Protocol: 3, Priority: 1},
			Fd:          prog.FD(), Name: "cil_from_container-x", DirectAction: true,
		}))
	}
}

func linkCount(t testing.TB) int {
	t.Helper()
	links, err := netlink.LinkList()
	require.NoError(t, err)
	return len(links)
}

// stall measures the longest wait of another user of the RTNL lock, until longest is called.
// Its request is for a link that does not exist.
func stall(t testing.TB) (longest func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		defer func() { result <- most }()
		missing := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: 1 << 30}}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			start := time.Now()
			if err := netlink.LinkDel(missing); !errors.Is(err, unix.ENODEV) {
				t.Errorf("delete a link that does not exist: %v", err)
			}
			most = max(most, time.Since(start))
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-result
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 500} {
		b.Run(fmt.Sprintf("%d links", n), func(b *testing.B) {
			testns.Enter(b, testns.Mount|testns.Net)
			c := cleanup.Leftovers{Ownership: ours(), Scope: cleanup.AllState, CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(b)}}
			var longest time.Duration
			for b.Loop() {
				b.StopTimer()
				endpoints(b, n)
				measured := stall(b)
				b.StartTimer()
				require.NoError(b, c.Apply(context.Background()))
				b.StopTimer()
				longest = max(longest, measured())
				b.StartTimer()
			}
			b.ReportMetric(float64(longest.Milliseconds()), "ms-stall")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/link")
			require.Equal(b, 1, linkCount(b))
		})
	}
}
