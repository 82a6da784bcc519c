// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// planNode makes an agent's objects, as on each of two nodes, with other numbers on the second.
func planNode(t *testing.T, root string, others int) cleanup.Leftovers {
	t.Helper()
	testns.Enter(t, testns.Mount|testns.Net)
	require.NoError(t, unix.Mount("bpf", root, "bpf", 0, "mode=0700"))
	for range others {
		run(t, "ip", "link", "add", "type", "veth")
	}
	veth(t, "eth0", "eth1")
	clsact(t, "eth0")
	filter(t, "eth0", ingress, uint16(1+others), "", program(t, ebpf.SchedCLS, "cil_from_netdev"))
	veth(t, "cilium_host", "cilium_net")
	clsact(t, "cilium_host")
	filter(t, "cilium_host", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_from_host"))
	run(t, "ip", "rule", "add", "pref", "9", "fwmark", "0x200/0xf00", "lookup", "2004", "proto", "kernel")
	pinAt(t, array(t, "x"), root, "cilium", "x")
	return cleanup.Leftovers{Ownership: ours(), Scope: cleanup.AllState, CgroupRoot: noCgroup, BPFRoots: []string{root}}
}

// Items reviewed on one node are removed on another, but no neighbour's, no objects that the
// agent made since the review, and none that hold those.
func TestCLN11_APlanOfOneNodeOnAnother(t *testing.T) {
	root := t.TempDir()
	var plan cleanup.Plan
	var listed []string
	t.Run("reviewed", func(t *testing.T) {
		l := planNode(t, root, 0)
		run(t, "ip", "rule", "add", "pref", "10", "fwmark", "0xa00/0xf00", "lookup", "2005", "proto", "kernel")
		found := inventory(t, l)
		plan, listed = l.Plan(found), objects(found.Items)
		require.Contains(t, listed, "ip rule IPv4 10: fwmark 0xa00/0xf00 lookup 2005")
	})
	t.Run("the same", func(t *testing.T) {
		l := planNode(t, root, 3)
		found := inventory(t, l)
		selected, missing := plan.Select(found)
		require.Equal(t, []cleanup.Planned{{Kind: "ip rule", Object: "IPv4 10: fwmark 0xa00/0xf00 lookup 2005", Why: "rules"}}, missing)
		require.Len(t, selected.Items, len(listed)-1)
		require.NoError(t, l.Remove(context.Background(), selected.Items))
		require.Empty(t, inventory(t, l).Items)
	})
	t.Run("more than that", func(t *testing.T) {
		l := planNode(t, root, 7)
		pinAt(t, array(t, "x"), root, "other", "x") // a neighbour's
		filter(t, "eth1", ingress, 1, "foreign", func() *ebpf.Program { clsact(t, "eth1"); return program(t, ebpf.SchedCLS, "foreign") }())
		filter(t, "eth0", egress, 1, "", program(t, ebpf.SchedCLS, "cil_to_netdev")) // made since the review
		pinAt(t, array(t, "x"), root, "cilium", "y")
		veth(t, "cilium_host2", "lxc_health")

		selected, _ := plan.Select(inventory(t, l))
		left := map[string]string{}
		for _, item := range selected.Left {
			left[item.String()] = item.Detail
		}
		require.Equal(t, "the plan does not name it", left["tc filter eth0 egress cil_to_netdev"])
		require.Equal(t, "its removal would also remove tc filter eth0 egress cil_to_netdev", left["clsact qdisc eth0"])
		require.Equal(t, "the plan does not name it", left["pin "+root+"/cilium/y"])
		require.Equal(t, "its removal would also remove pin "+root+"/cilium/y", left["pin directory "+root+"/cilium"])
		require.NoError(t, l.Remove(context.Background(), selected.Items))

		require.Contains(t, listing(t, "eth0"), "cil_to_netdev")
		require.NotContains(t, listing(t, "eth0"), "cil_from_netdev")
		require.Contains(t, listing(t, "eth1"), "foreign")
		require.FileExists(t, filepath.Join(root, "cilium", "y"))
		require.NoFileExists(t, filepath.Join(root, "cilium", "x"))
		require.FileExists(t, filepath.Join(root, "other", "x"))
		index(t, "lxc_health")
		again, _ := plan.Select(inventory(t, l))
		require.Empty(t, again.Items)
	})
}
