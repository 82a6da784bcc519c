// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bench_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/bench"
)

const eniTable = 11

// The cost of finding and removing the rules of many pods' addresses, two for each pod, all of two
// priorities: in proportion to their number, as listing them once and deleting each is.
func BenchmarkCleanupRules(b *testing.B) {
	for _, rules := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			testns.Enter(b, testns.Mount|testns.Net)
			hideMachine(b)
			m := bench.Measured{}
			for b.Loop() {
				for _, way := range []way{{bench.Ours, removeRules}, {"one-by-one", deleteRules}} {
					addRules(b, rules)
					begin := time.Now()
					way.remove(b)
					m.Add(way.name, "ms", ms(time.Since(begin)))
					require.Empty(b, podRules(b))
				}
			}
			m.Report(b)
		})
	}
}

func addRules(b *testing.B, n int) {
	for i := range n / 2 {
		pod := &net.IPNet{IP: net.IPv4(10, 1, byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)}
		to, from := podRule(20, 254), podRule(111, eniTable)
		to.Dst, from.Src = pod, pod
		require.NoError(b, netlink.RuleAdd(to))
		require.NoError(b, netlink.RuleAdd(from))
	}
}

func podRule(priority, table int) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.Table, rule.Protocol = netlink.FAMILY_V4, priority, table, 2
	return rule
}

func podRules(b *testing.B) (own []netlink.Rule) {
	all, err := netlink.RuleList(netlink.FAMILY_V4)
	require.NoError(b, err)
	for _, rule := range all {
		if rule.Priority == 20 || rule.Priority == 111 {
			own = append(own, rule)
		}
	}
	return own
}

func removeRules(b *testing.B) {
	c := cleanup.Leftovers{Ownership: cleanup.CiliumENI(eniTable), Scope: "all-state"}
	inventory, err := c.Inventory(b.Context())
	require.NoError(b, err)
	require.NoError(b, c.Remove(b.Context(), inventory.Items))
}

func deleteRules(b *testing.B) {
	for _, rule := range podRules(b) {
		require.NoError(b, netlink.RuleDel(&rule))
	}
}
