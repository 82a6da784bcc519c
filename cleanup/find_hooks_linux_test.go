// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// bpftool runs bpftool, which lists every attached program.
func bpftool(t testing.TB, args ...string) string {
	t.Helper()
	requireTools(t, "bpftool")
	return run(t, append([]string{"bpftool"}, args...)...)
}

// hasTCX reports whether the kernel has lists of programs on links (Linux 6.6).
func hasTCX(t testing.TB) bool {
	t.Helper()
	_, err := link.QueryPrograms(link.QueryOptions{Target: index(t, "lo"), Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, unix.EINVAL) {
		return false
	}
	require.NoError(t, err)
	return true
}

// needsTCX skips the test if the kernel has no such lists; another test shows that this is no
// error.
func needsTCX(t testing.TB) {
	t.Helper()
	if !hasTCX(t) {
		testns.SkipKernel(t, "tcx")
	}
}

func tcxLink(t testing.TB, dev string, attach ebpf.AttachType, prog *ebpf.Program) link.Link {
	t.Helper()
	l, err := link.AttachTCX(link.TCXOptions{Interface: index(t, dev), Program: prog, Attach: attach})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func tcxAttach(t testing.TB, dev string, attach ebpf.AttachType, prog *ebpf.Program) {
	t.Helper()
	require.NoError(t, link.RawAttachProgram(link.RawAttachProgramOptions{Target: index(t, dev), Program: prog, Attach: attach}))
}

// linkIDs are the ids of a program's bpf_links, as bpftool shows them.
func linkIDs(t testing.TB, prog *ebpf.Program) []string {
	t.Helper()
	info, err := prog.Info()
	require.NoError(t, err)
	id, _ := info.ID()
	var out []string
	for line := range strings.Lines(bpftool(t, "link", "show")) {
		if strings.HasSuffix(strings.TrimSpace(line), fmt.Sprintf(" prog %d", id)) {
			out = append(out, strings.SplitN(line, ":", 2)[0])
		}
	}
	return out
}

// hooks asks the kernel, link by link, for the attached programs. The program's name
// stands for its id.
func hooks(t testing.TB, attach ...ebpf.AttachType) []string {
	t.Helper()
	if !hasTCX(t) {
		return nil
	}
	links, err := netlink.LinkList()
	require.NoError(t, err)
	var out []string
	for _, l := range links {
		for _, at := range attach {
			result, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: at})
			require.NoError(t, err)
			for _, p := range result.Programs {
				out = append(out, fmt.Sprintf("%s %v %s", l.Attrs().Name, at, programName(t, p.ID)))
			}
		}
	}
	return out
}

func programName(t testing.TB, id ebpf.ProgramID) string {
	t.Helper()
	prog, err := ebpf.NewProgramFromID(id)
	require.NoError(t, err)
	defer prog.Close()
	info, err := prog.Info()
	require.NoError(t, err)
	return info.Name
}

// An endpoint whose program is on tcx is recognized by that program, and its programs go with
// the link, even if a process holds the bpf_link.
func TestCLN2_TCX(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	needsTCX(t)
	veth(t, "lxcnothex", "peer")
	veth(t, "lxcforeign", "peer2")
	tcxLink(t, "lxcnothex", ebpf.AttachTCXIngress, program(t, ebpf.SchedCLS, "cil_from_contai"))
	tcxLink(t, "lxcforeign", ebpf.AttachTCXIngress, program(t, ebpf.SchedCLS, "foreign"))
	twin := listing(t, "lxcforeign")
	c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", BPFRoots: []string{bpfDir(t)}, CgroupRoot: noCgroup}
	require.Equal(t, []string{"tcx program lxcnothex ingress cil_from_contai", "link lxcnothex"}, objects(inventory(t, c).Items))
	apply(t, c)
	require.Equal(t, twin, listing(t, "lxcforeign"))
	require.Equal(t, []string{"lxcforeign TCXIngress foreign"}, hooks(t, ebpf.AttachTCXIngress))
}

// Programs on tcx are in the namespace of their link.
func TestCLN6_TCXInAnotherNamespaceSurvives(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	needsTCX(t)
	ownRun(t)
	ip(t, "netns add other")
	prog := program(t, ebpf.SchedCLS, "cil_to_netdev")
	ip(t, "link add dev eth0 index 77 type veth peer name eth1")
	l := tcxLink(t, "eth0", ebpf.AttachTCXIngress, prog)
	ip(t, "link set dev eth0 netns other")
	require.Len(t, linkIDs(t, prog), 1)
	ip(t, "link add dev eth0 index 77 type veth peer name eth2")
	c := bpfState(t)
	require.Empty(t, inventory(t, c).Items)
	apply(t, c)
	require.Len(t, linkIDs(t, prog), 1)
	info, err := l.Info()
	require.NoError(t, err)
	require.Equal(t, uint32(77), info.TCX().Ifindex, "it is still attached")
}

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

	c.Scope = "all-state"
	require.Equal(t, []string{"link lxc0123456789ab"}, objects(inventory(t, c).Items))
	apply(t, c)
	require.Equal(t, before, onNetkit(t, "nk0", "lxcfoo"))
}
