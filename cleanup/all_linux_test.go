// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// dirtyNode makes one of each kind, beside foreign twins.
func dirtyNode(t testing.TB) cleanup.Leftovers {
	t.Helper()
	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
	dir := testns.TempDir(t)
	c.Ownership.StateDirs = []string{filepath.Join(dir, "cilium")}
	c.Ownership = excepting(c.Ownership)
	veth(t, "eth0", "eth1")
	clsact(t, "eth0")
	filter(t, "eth0", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_from_netdev"))
	filter(t, "eth0", egress, 2, "foreign", program(t, ebpf.SchedCLS, "foreign"))
	clsact(t, "eth1")
	filter(t, "eth1", egress, 1, "", program(t, ebpf.SchedCLS, "cil_to_netdev"))
	setXDP(t, "eth1", program(t, ebpf.XDP, "cil_xdp_entry"), 0)
	veth(t, "cilium_host", "cilium_net")
	clsact(t, "cilium_host")
	filter(t, "cilium_host", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_from_host"))
	pinAt(t, array(t, "x"), c.BPFRoots[0], "cilium", "x")
	pinAt(t, array(t, "x"), c.BPFRoots[0], "other", "x")
	files(t, dir, "cilium/state/x", "cilium/m/", "live/x")
	require.NoError(t, unix.Mount(filepath.Join(dir, "live"), filepath.Join(dir, "cilium", "m"), "", unix.MS_BIND, ""))
	return c
}

func TestCLN3_Order(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := dirtyNode(t)
	inv := inventory(t, c)
	var order []string
	c.Progress = func(_, _ int, item string, err error) {
		require.NoError(t, err)
		order = append(order, item)
	}
	require.NoError(t, c.Remove(context.Background(), inv.Items))
	root, state := c.BPFRoots[0], c.Ownership.StateDirs[0]
	require.Equal(t, []string{
		"tc filter eth1 egress cil_to_netdev", // programs first
		"tc filter eth0 ingress cil_from_netdev",
		"clsact qdisc eth1",
		"xdp program eth1 cil_xdp_entry",
		"link cilium_net",
		"link cilium_host",
		"tc filter cilium_host ingress cil_from_host", // went with its link
		"clsact qdisc cilium_host",
		"pin " + root + "/cilium/x", // pins after the programs that need them
		"pin directory " + root + "/cilium",
		"mount " + state + "/m",
		"state directory " + state,
	}, order)
	require.ElementsMatch(t, objects(inv.Items), order, "exactly the printed items were removed")
	require.Contains(t, listing(t, "eth0"), "foreign")
	require.FileExists(t, filepath.Join(root, "other", "x"))
	require.FileExists(t, filepath.Join(filepath.Dir(state), "live", "x"))

	apply(t, c)
	again := listed(t, context.Background(), c)
	require.Empty(t, again.Items)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

func TestCheckFoldsLongLists(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := bpfState(t)
	for i := range 30 {
		pinAt(t, array(t, "x"), c.BPFRoots[0], "tc", "globals", fmt.Sprintf("cilium_%02d", i))
	}
	changes, err := c.Check(context.Background())
	require.NoError(t, err)
	require.Len(t, changes, 20)
	require.Equal(t, "remove 11 more of kind pin", changes[19])
}

// A finder that fails does not hide what the others found.
func TestCLN4_FinderFailsAndTheRestIsFound(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := dirtyNode(t)
	loop := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.Symlink(loop, loop))
	c.Ownership.StateDirs = append([]string{filepath.Join(loop, "x")}, c.Ownership.StateDirs...)
	c.Ownership = excepting(c.Ownership)
	inv, err := c.Inventory(context.Background())
	require.ErrorContains(t, err, "find state directories: ")
	require.ErrorContains(t, err, loop)
	require.Len(t, inv.Items, 12)
	require.ErrorContains(t, c.Apply(context.Background()), loop)
	inv, err = c.Inventory(context.Background())
	require.Error(t, err)
	require.Empty(t, inv.Items)
}

func TestConformance(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := dirtyNode(t)
	bootstraptest.Conform(t, func() bootstrap.Action { return c }, nil)
}

// Foreign names can neither break a line nor control the terminal.
func TestNamesAreQuoted(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := bpfState(t)
	veth(t, "eth0", "eth1")
	clsact(t, "eth0")
	filter(t, "eth0", ingress, 1, "cil_to_netdev\nremove link eth0\x1b[2J", program(t, ebpf.SchedCLS, "cil_to_netdev"))
	changes, err := c.Check(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{`remove tc filter "eth0 ingress cil_to_netdev\nremove link eth0\x1b[2J"`, "remove clsact qdisc eth0"}, changes)
	apply(t, c)
}

func TestOnlyWhatAnInventoryListedIsRemoved(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "cilium_host", "cilium_net")
	before := everything(t)
	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state"}
	err := c.Remove(context.Background(), []cleanup.Item{{Kind: "link", Object: "cilium_host"}})
	require.ErrorContains(t, err, "remove link cilium_host: it was not listed by an inventory")
	items := inventory(t, c).Items
	for i, kind := range []string{"ipset", "nothing"} {
		items[i].Kind = kind
		require.ErrorContains(t, c.Remove(context.Background(), items[i:i+1]), kind+" "+items[i].Object+": it was not listed by an inventory")
	}
	require.Equal(t, before, everything(t))
}
