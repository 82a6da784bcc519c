// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// netkit makes a pair of links, and returns whether the kernel supports that.
func netkit(t testing.TB, name, peer string) bool {
	t.Helper()
	pair := &netlink.Netkit{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.NETKIT_MODE_L3}
	pair.SetPeerAttrs(&netlink.LinkAttrs{Name: peer})
	err := netlink.LinkAdd(pair)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Logf("this kernel has no netkit: %v", err)
		return false
	}
	require.NoError(t, err)
	return true
}

func netkitLink(t testing.TB, dev string, attach ebpf.AttachType, prog *ebpf.Program) link.Link {
	t.Helper()
	l, err := link.AttachNetkit(link.NetkitOptions{Interface: index(t, dev), Program: prog, Attach: attach})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// onNetkit lists the names of the programs on netkit pairs.
func onNetkit(t testing.TB, names ...string) []string {
	t.Helper()
	var out []string
	for _, name := range names {
		for _, attach := range []ebpf.AttachType{ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer} {
			result, err := link.QueryPrograms(link.QueryOptions{Target: index(t, name), Attach: attach})
			require.NoError(t, err)
			for _, p := range result.Programs {
				out = append(out, name+" "+attach.String()+" "+programName(t, p.ID))
			}
		}
	}
	return out
}

// Without netkit in the kernel there is nothing to find, and no error.
func TestCLN2_Netkit(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := bpfState(t)
	veth(t, "eth0", "eth1")
	require.Empty(t, inventory(t, c).Items)
	if !netkit(t, "nk0", "nk1") {
		testns.SkipKernel(t, "netkit")
	}
	netkit(t, "lxc0123456789ab", "nk2")
	netkit(t, "lxcfoo", "nk3")
	const primary, peer = ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer
	foreign, ours2 := program(t, ebpf.SchedCLS, "foreign"), program(t, ebpf.SchedCLS, "cil_to_netdev")
	netkitLink(t, "nk0", primary, foreign)
	netkitLink(t, "nk0", peer, foreign)
	before := onNetkit(t, "nk0", "lxcfoo")
	require.Len(t, before, 2)
	netkitLink(t, "nk0", primary, ours2)
	netkitLink(t, "nk0", peer, ours2)
	pinAt(t, netkitLink(t, "lxcfoo", peer, ours2), c.BPFRoots[0], "cilium", "x")

	require.ElementsMatch(t, []string{"nk0 primary cil_to_netdev", "nk0 peer cil_to_netdev", "lxcfoo peer cil_to_netdev"}, ofKind("netkit program", inventory(t, c).Items))
	apply(t, c)
	require.Equal(t, before, onNetkit(t, "nk0", "lxcfoo"))

	c.Scope = cleanup.AllState
	require.Equal(t, []string{"link lxc0123456789ab"}, objects(inventory(t, c).Items))
	apply(t, c)
	require.Equal(t, before, onNetkit(t, "nk0", "lxcfoo"))
}
