// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// dropCapability takes a capability from the test's thread until its cleanups
// run.
func dropCapability(t testing.TB, capability uint) {
	t.Helper()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before [2]unix.CapUserData
	require.NoError(t, unix.Capget(&hdr, &before[0]))
	t.Cleanup(func() { require.NoError(t, unix.Capset(&hdr, &before[0])) })
	data := before
	data[capability/32].Effective &^= 1 << (capability % 32)
	require.NoError(t, unix.Capset(&hdr, &data[0]))
}

// Without its capability, each kind says so of what it cannot list, and of each object that it
// cannot remove; nothing changes.
func TestCLN4_AMissingCapabilityIsNamed(t *testing.T) {
	const admin, raw, sys, needsAdmin = unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN, "operation not permitted (needs CAP_NET_ADMIN)"
	const save, restore = "/usr/sbin/iptables-legacy-save: exit status ", "/usr/sbin/iptables-legacy-"
	legacy := func(t *testing.T) cleanup.Leftovers {
		enterNetfilter(t, "iptables-legacy")
		rules(t, "iptables-legacy", "*filter", ":CILIUM_x - [0:0]", "COMMIT")
		return netfilterOnly()
	}
	for name, c := range map[string]struct {
		make    func(t *testing.T) cleanup.Leftovers
		lacks   []uint
		removes []string // each item's error has one of them
		lists   []string // parts of the inventory's error
		found   int      // items that are found nevertheless
	}{
		"links, deleted in groups": {func(t *testing.T) cleanup.Leftovers {
			endpoints(t, 20)
			return cleanup.Leftovers{Ownership: ours(), Scope: "all-state", CgroupRoot: noCgroup, BPFRoots: []string{bpfDir(t)}}
		}, []uint{admin}, []string{needsAdmin, "bpf cil_from_container-x pref 1 is on it; left as it is"}, []string{"find iptables-nft rules: list chains: ", needsAdmin}, 60},
		"routes and rules": {func(t *testing.T) cleanup.Leftovers {
			noAddresses(t)
			vethUp(t, "cilium_host", "cilium_net")
			ip(t, "-4 route add 10.0.1.0/24 dev cilium_host")
			ip(t, "-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004")
			return netOnly()
		}, []uint{admin}, []string{needsAdmin}, []string{"find ipsets: ", needsAdmin}, 4},
		"XDP by a bpf_link": {func(t *testing.T) cleanup.Leftovers {
			veth(t, "eth0", "eth1")
			xdpLink(t, "eth0", program(t, ebpf.XDP, "cil_xdp_entry"), 0)
			return bpfState(t)
		}, []uint{admin}, nil, []string{"xdp program eth0 cil_xdp_entry: cannot tell whether it is attached by a bpf_link", needsAdmin}, 0},
		"programs that cannot be looked at": {func(t *testing.T) cleanup.Leftovers {
			l := bpfState(t)
			veth(t, "eth0", "eth1")
			pinAt(t, array(t, "x"), l.BPFRoots[0], "cilium", "x")
			setXDP(t, "eth0", program(t, ebpf.XDP, "cil_xdp_entry"), 0)
			return l
		}, []uint{sys}, nil, []string{"find xdp programs: look at BPF program ", "operation not permitted (needs CAP_SYS_ADMIN)"}, 2},
		"cgroup programs": {func(t *testing.T) cleanup.Leftovers {
			dir := cgroupDir(t)
			progAttach(t, dir, ebpf.AttachCGroupInet4Connect, cgroupProgram(t, ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, "cil_to_netdev"), allowMulti)
			return cgroupOnly(t, dir)
		}, []uint{admin, sys}, []string{needsAdmin}, []string{"find cgroup programs: list bpf_links: ", "(needs CAP_SYS_ADMIN)"}, 0},
		"xfrm": {func(t *testing.T) cleanup.Leftovers {
			keepStates(t)
			ip(t, "xfrm state allocspi src 10.0.0.1 dst 10.0.0.2 proto esp mode tunnel mark 0xd00 mask 0xf00 min 3 max 3")
			return cleanup.Leftovers{Ownership: cleanup.Ownership{XFRM: cleanup.CiliumOnRequest().XFRM}, Scope: "all-state"}
		}, []uint{admin}, []string{needsAdmin}, []string{"list xfrm policy: netlink dump: " + needsAdmin}, 0},
		"iptables-nft": {func(t *testing.T) cleanup.Leftovers {
			enterNetfilter(t, "iptables-nft")
			rules(t, "iptables-nft", foreignRules...)
			rules(t, "iptables-nft", ourRules...)
			return netfilterOnly()
		}, []uint{admin}, []string{needsAdmin}, []string{"find iptables-nft rules: list chains: ", needsAdmin}, 0},
		"iptables-legacy, to read":  {legacy, []uint{raw}, []string{restore, "(needs CAP_NET_RAW)"}, []string{save, "(needs CAP_NET_RAW)"}, 0},
		"iptables-legacy, to write": {legacy, []uint{raw, admin}, []string{restore, "(needs CAP_NET_ADMIN and CAP_NET_RAW)"}, []string{save, "(needs CAP_NET_ADMIN and CAP_NET_RAW)"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, "iptables") {
				testns.Enter(t, testns.Mount|testns.Net)
			}
			l := c.make(t)
			inv := inventory(t, l)
			require.NotEmpty(t, inv.Items)
			before := everything(t) + routing(t)
			for _, capability := range c.lacks {
				dropCapability(t, capability)
				if capability != sys { // the host's tools lack it too; the thread ends with the test
					require.NoError(t, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0))
				}
			}
			if c.removes != nil {
				l.Progress = func(_, _ int, item string, err error) {
					named := slices.ContainsFunc(c.removes, func(says string) bool { return strings.Contains(err.Error(), says) })
					require.True(t, named, "%s: %v", item, err)
				}
				err := l.Remove(context.Background(), inv.Items)
				for _, item := range inv.Items {
					require.ErrorContains(t, err, "remove "+item.String()+": ")
				}
				for _, says := range c.removes {
					require.ErrorContains(t, err, says)
				}
			}
			again, err := l.Inventory(context.Background())
			for _, says := range c.lists {
				require.ErrorContains(t, err, says)
			}
			require.Len(t, again.Items, c.found)
			require.Equal(t, before, everything(t)+routing(t))
		})
	}
}
