// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
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
	return cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{root}}
}

// Items reviewed on one node are removed on another, but no neighbour's, no objects that the
// agent made since the review, and none that hold those.
func TestCLN11_APlanOfOneNodeOnAnother(t *testing.T) {
	root := t.TempDir()
	var plan cleanup.Removals
	t.Run("reviewed", func(t *testing.T) {
		l := planNode(t, root, 0)
		run(t, "ip", "rule", "add", "pref", "10", "fwmark", "0xa00/0xf00", "lookup", "2005", "proto", "kernel")
		plan = l.Removals(inventory(t, l))
	})
	t.Run("more than that", func(t *testing.T) {
		l := planNode(t, root, 7)
		pinAt(t, array(t, "x"), root, "other", "x") // a neighbour's
		filter(t, "eth1", ingress, 1, "foreign", func() *ebpf.Program { clsact(t, "eth1"); return program(t, ebpf.SchedCLS, "foreign") }())
		filter(t, "eth0", egress, 1, "", program(t, ebpf.SchedCLS, "cil_to_netdev")) // made since the review
		pinAt(t, array(t, "x"), root, "cilium", "y")
		veth(t, "cilium_host2", "lxc_health")

		selected, missing := plan.Select(inventory(t, l))
		require.Equal(t, []string{"ip rule IPv4 10: fwmark 0xa00/0xf00 lookup 2005"}, missing)
		left := map[string]string{}
		for _, item := range selected.Left {
			left[item.String()] = item.Detail
		}
		require.Equal(t, map[string]string{
			"tc filter eth0 egress cil_to_netdev":    "the plan does not name it",
			"tc filter eth0 ingress cil_from_netdev": "it goes with tc filter eth0 egress cil_to_netdev, which the plan does not name",
			"clsact qdisc eth0":                      "it goes with tc filter eth0 egress cil_to_netdev, which the plan does not name",
			"pin " + root + "/cilium/y":              "the plan does not name it",
			"pin directory " + root + "/cilium":      "something in it stays",
			"link lxc_health":                        "the plan does not name it",
			"link cilium_host2":                      "the plan does not name it",
		}, left)
		require.NoError(t, l.Remove(context.Background(), selected.Items))

		require.Contains(t, listing(t, "eth0"), "cil_to_netdev")
		require.Contains(t, listing(t, "eth0"), "cil_from_netdev")
		require.Contains(t, listing(t, "eth1"), "foreign")
		require.FileExists(t, filepath.Join(root, "cilium", "y"))
		require.NoFileExists(t, filepath.Join(root, "cilium", "x"))
		require.FileExists(t, filepath.Join(root, "other", "x"))
		index(t, "lxc_health")
		again, _ := plan.Select(inventory(t, l))
		require.Empty(t, again.Items)
	})
}

// grouped returns the names of the leader and of the members.
func grouped(g cleanup.Group) []string {
	return append([]string{g.Kind + " " + g.Object}, g.Members...)
}

// groups returns the names of each group of a plan.
func groups(p cleanup.Removals) (names [][]string) {
	for _, g := range p.Groups {
		names = append(names, grouped(g))
	}
	return names
}

func TestCLN11_ALinkWithItsRoutesFiltersAndPeer(t *testing.T) {
	l := planNode(t, testns.TempDir(t), 0)
	run(t, "ip", "link", "set", "cilium_net", "up")
	run(t, "ip", "link", "set", "cilium_host", "up")
	run(t, "ip", "route", "add", "10.1.0.0/16", "dev", "cilium_host")
	run(t, "ip", "route", "add", "10.2.0.0/16", "dev", "cilium_host", "table", "7")
	run(t, "ip", "route", "add", "10.3.0.0/16", "dev", "cilium_net")
	found := inventory(t, l)
	p := l.Removals(found)
	require.NoError(t, p.Validate())
	require.Contains(t, p.Groups, cleanup.Group{Kind: "clsact qdisc", Object: "eth0", Members: []string{"tc filter eth0 ingress cil_from_netdev"}})
	leader := slices.IndexFunc(p.Groups, func(g cleanup.Group) bool { return g.Kind+" "+g.Object == "link cilium_host" })
	require.Equal(t, sorted([]string{
		"link cilium_host", "link cilium_net", "tc filter cilium_host ingress cil_from_host", "clsact qdisc cilium_host",
		"route 10.1.0.0/16 dev cilium_host table 254", "route 10.2.0.0/16 dev cilium_host table 7", "route 10.3.0.0/16 dev cilium_net table 254",
	}), sorted(grouped(p.Groups[leader])))
	var text strings.Builder
	require.NoError(t, found.WriteText(&text, 0))
	require.Contains(t, text.String(), "\nlink (7)\n  cilium_host  (veth, peer cilium_net)\n    tc filter cilium_host ingress cil_from_host  (pref")

	p.Groups = slices.Delete(p.Groups, leader, leader+1)
	selected, missing := p.Select(found)
	require.Empty(t, missing)
	require.NoError(t, l.Remove(context.Background(), selected.Items))
	require.Contains(t, listing(t, "cilium_host"), "cil_from_host")
	require.Contains(t, run(t, "ip", "route"), "10.1.0.0/16")
	require.NotContains(t, listing(t, "eth0"), "cil_from_netdev")
}

func TestCLN11_AChainWithItsRules(t *testing.T) {
	testns.Enter(t, testns.Net)
	for _, tool := range []string{"iptables-nft", "iptables-legacy"} {
		run(t, tool, "-t", "nat", "-N", "CILIUM_POST_nat")
		run(t, tool, "-t", "nat", "-A", "POSTROUTING", "-j", "CILIUM_POST_nat")
		run(t, tool, "-t", "nat", "-A", "OUTPUT", "-j", "CILIUM_POST_nat")
		run(t, tool, "-N", "CILIUM_FORWARD")
		run(t, tool, "-N", "CILIUM_called")
		run(t, tool, "-N", "CILIUM_callee")
		run(t, tool, "-A", "CILIUM_called", "-g", "CILIUM_callee")
		run(t, tool, "-A", "FORWARD", "-j", "CILIUM_called")
	}
	l := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup}
	for _, kind := range []string{"iptables-nft ", "iptables-legacy "} {
		rules := []string{kind + "ip nat rule OUTPUT -> CILIUM_POST_nat", kind + "ip nat rule POSTROUTING -> CILIUM_POST_nat"}
		var names [][]string
		for _, g := range l.Removals(inventory(t, l)).Groups {
			if strings.HasPrefix(g.Kind+" "+g.Object, kind) {
				names = append(names, sorted(grouped(g)))
			}
		}
		require.ElementsMatch(t, [][]string{append([]string{kind + "ip nat chain CILIUM_POST_nat"}, rules...), {kind + "ip filter chain CILIUM_FORWARD"}, {
			kind + "ip filter chain CILIUM_called", kind + "ip filter chain CILIUM_callee", kind + "ip filter rule FORWARD -> CILIUM_called",
		}}, names)
	}
}

func TestCLN11_APinWithItsLinkAndProgram(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	root := bpfDir(t)
	veth(t, "eth0", "eth1")
	veth(t, "cilium_host", "cilium_net")
	pins := map[string]string{}
	for _, dev := range []string{"eth0", "cilium_host"} {
		attached, err := link.AttachXDP(link.XDPOptions{Program: program(t, ebpf.XDP, "cil_xdp_entry"), Interface: index(t, dev)})
		require.NoError(t, err)
		pins[dev] = "pin " + pinAt(t, attached, root, "cilium", "links", dev)
		require.NoError(t, attached.Close())
	}
	l := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{root}}
	found := inventory(t, l)
	p := l.Removals(found)
	names := groups(p)
	require.Contains(t, names, []string{pins["eth0"], "xdp program eth0 cil_xdp_entry"})
	require.Contains(t, names, []string{"link cilium_host", "xdp program cilium_host cil_xdp_entry", "link cilium_net", pins["cilium_host"]})

	p.Groups = slices.DeleteFunc(p.Groups, func(g cleanup.Group) bool { return g.Kind+" "+g.Object == pins["eth0"] })
	selected, _ := p.Select(found)
	require.NoError(t, l.Remove(context.Background(), selected.Items))
	require.Equal(t, []string{"xdp program eth0 cil_xdp_entry", pins["eth0"], "pin directory " + root + "/cilium/links", "pin directory " + root + "/cilium"}, objects(inventory(t, l).Items))
}

func TestCLN11_MountsGoWithTheDirectoryAndPinsWithTheMount(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir := testns.TempDir(t)
	run(t, "mkdir", "-p", dir+"/state/m", dir+"/bpf")
	run(t, "ln", "-s", ".", dir+"/link")
	require.NoError(t, unix.Mount("tmpfs", dir+"/state/m", "tmpfs", 0, ""))
	require.NoError(t, unix.Mount("bpf", dir+"/bpf", "bpf", 0, ""))
	pinAt(t, array(t, "x"), dir, "bpf", "cilium", "x")
	own := excepting(cleanup.Ownership{StateDirs: []string{dir + "/link/state"}, Mounts: []cleanup.MountRule{{Path: dir + "/bpf", Type: "bpf"}}, Pins: []string{"cilium"}})
	l := cleanup.Leftovers{Ownership: own, Scope: "all-state", CgroupRoot: noCgroup}
	names := groups(l.Removals(inventory(t, l)))
	require.Equal(t, [][]string{
		{"mount " + dir + "/bpf", "pin " + dir + "/bpf/cilium/x", "pin directory " + dir + "/bpf/cilium"},
		{"state directory " + dir + "/link/state", "mount " + dir + "/state/m"},
	}, names)
}

func TestCLN11_AStateDirectoryWithAllInIt(t *testing.T) {
	enter(t, testns.Mount|testns.Net)
	dir := testns.TempDir(t)
	run(t, "mkdir", "-p", dir+"/state/inner", dir+"/state/net.d", dir+"/statement")
	run(t, "ln", "-s", ".", dir+"/link")
	for _, file := range []string{"state/f", "state/net.d/9.conf.bak", "state2"} {
		run(t, "touch", dir+"/"+file)
	}
	own := excepting(cleanup.Ownership{
		StateDirs: []string{dir + "/link/state", dir + "/state/inner", dir + "/statement"},
		Files:     []string{dir + "/state/f", dir + "/state2"},
		SetAside:  []string{dir + "/state/net.d/*.bak"},
	})
	l := cleanup.Leftovers{Ownership: own, Scope: "all-state", CgroupRoot: noCgroup}
	names := groups(l.Removals(inventory(t, l)))
	require.ElementsMatch(t, [][]string{
		{"state directory " + dir + "/link/state", "state directory " + dir + "/state/inner", "configuration set aside " + dir + "/state/net.d/9.conf.bak", "file " + dir + "/state/f"},
		{"state directory " + dir + "/statement"},
		{"file " + dir + "/state2"},
	}, names)
}
