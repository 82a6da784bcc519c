// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// replaced is a listed object whose place another one takes.
type replaced struct {
	found   cleanup.Leftovers
	replace func()
	says    []string      // nil: the listed object has gone, which is success
	look    func() string // nil: at links and their programs
	gone    func()        // nil: that is not tried
}

// An object that took the place of a listed one stays, and the error says so unless the listed
// one has merely gone.
func TestCLN1_WhatTookThePlaceOfAListedObjectStays(t *testing.T) {
	const another, in, connect4 = "another one has taken its place", ebpf.AttachTCXIngress, ebpf.AttachCGroupInet4Connect
	cgroup := func(t *testing.T) (string, cleanup.Leftovers) {
		dir := cgroupDir(t)
		progAttach(t, dir, connect4, cgroupProgram(t, ebpf.CGroupSockAddr, connect4, "cil_to_netdev"), allowOverride)
		return dir, cgroupOnly(t, dir)
	}
	for name, listed := range map[string]func(t *testing.T) replaced{
		"filter": func(t *testing.T) replaced {
			clsact(t, "eth0")
			filter(t, "eth0", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_to_netdev"))
			return replaced{bpfState(t), func() { filter(t, "eth0", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_from_netdev")) },
				[]string{"remove tc filter eth0 ingress cil_to_netdev: it is program ", "remove clsact qdisc eth0: bpf filter pref 1 is on it"}, nil, nil}
		},
		"tcx": func(t *testing.T) replaced {
			needsTCX(t)
			was, is := program(t, ebpf.SchedCLS, "cil_to_netdev"), program(t, ebpf.SchedCLS, "cil_from_netdev")
			l := tcxLink(t, "eth0", in, was)
			tcxAttach(t, "eth0", ebpf.AttachTCXEgress, was)
			return replaced{bpfState(t), func() {
				require.NoError(t, l.Close())
				tcxLink(t, "eth0", in, is)
				require.NoError(t, link.RawDetachProgram(link.RawDetachProgramOptions{Target: index(t, "eth0"), Program: was, Attach: ebpf.AttachTCXEgress}))
				tcxAttach(t, "eth0", ebpf.AttachTCXEgress, is)
			}, nil, func() string { return strings.Join(hooks(t, in, ebpf.AttachTCXEgress), "\n") }, func() { ip(t, "link del dev eth0") }}
		},
		"XDP program": func(t *testing.T) replaced {
			setXDP(t, "eth0", program(t, ebpf.XDP, "cil_to_netdev"), 0)
			return replaced{bpfState(t), func() { setXDP(t, "eth0", program(t, ebpf.XDP, "cil_from_netdev"), 0) },
				[]string{"remove xdp program eth0 cil_to_netdev: it is program "}, nil, func() { ip(t, "link set dev eth0 xdp off") }}
		},
		"XDP program's bpf_link": func(t *testing.T) replaced {
			prog := program(t, ebpf.XDP, "cil_xdp_entry")
			l := xdpLink(t, "eth0", prog, 0)
			return replaced{bpfState(t), func() { require.NoError(t, l.Close()); xdpLink(t, "eth0", prog, 0) }, []string{another}, nil, func() { ip(t, "link del dev eth0") }}
		},
		"cgroup program": func(t *testing.T) replaced {
			dir, l := cgroup(t)
			return replaced{l, func() {
				progAttach(t, dir, connect4, cgroupProgram(t, ebpf.CGroupSockAddr, connect4, "cil_from_netdev"), allowOverride)
			}, nil, func() string { return strings.Join(attached(t, dir), "\n") }, nil}
		},
		"cgroup": func(t *testing.T) replaced {
			dir, l := cgroup(t)
			return replaced{l, func() { require.NoError(t, errors.Join(os.Remove(dir), os.Mkdir(dir, 0o755))) }, []string{another}, nil, nil}
		},
		"pin": func(t *testing.T) replaced {
			l, m := bpfState(t), array(t, "cilium_x")
			path := pinAt(t, array(t, "cilium_x"), l.BPFRoots[0], "tc", "globals", "cilium_x")
			return replaced{l, func() { require.NoError(t, errors.Join(os.Remove(path), m.Pin(path))) }, []string{"remove pin " + path + ": " + another},
				func() string { return tree(t, l.BPFRoots[0]) }, func() { require.NoError(t, os.Remove(path)) }}
		},
		"link": func(t *testing.T) replaced {
			veth(t, "cilium_host", "x")
			return replaced{netOnly(), func() { ip(t, "link set dev cilium_host name mine") }, []string{"remove link cilium_host: mine has its index"}, nil, func() { ip(t, "link del dev mine") }}
		},
		"network namespace": func(t *testing.T) replaced {
			ownRun(t)
			ip(t, "netns add cni-1")
			held, err := os.Open("/run/netns/cni-1") // so that the kernel cannot give its inode to the next one
			require.NoError(t, err)
			t.Cleanup(func() { held.Close() })
			return replaced{netnsOnly(), func() { ip(t, "netns del cni-1"); ip(t, "netns add cni-1") }, []string{"remove network namespace cni-1: " + another},
				func() string { return run(t, "ip", "netns", "exec", "cni-1", "true") }, nil}
		},
		"rule of nftables, in a table that was remade": func(t *testing.T) replaced {
			const table = "table ip nat { chain CHAIN { accept; }; chain PREROUTING { type nat hook prerouting priority -100; jump CHAIN; }; }"
			run(t, "nft", strings.ReplaceAll(table, "CHAIN", "CILIUM_x"))
			return replaced{netfilterOnly(), func() { run(t, "nft", "delete table ip nat; "+strings.ReplaceAll(table, "CHAIN", "foreign")) },
				nil, func() string { return run(t, "nft", "-a", "list", "ruleset") }, nil}
		},
		"ipset": func(t *testing.T) replaced {
			run(t, "ipset", "create", "cilium_x", "hash:ip")
			return replaced{netfilterOnly(), func() { run(t, "ipset", "destroy", "cilium_x"); run(t, "ipset", "create", "cilium_x", "hash:net") },
				[]string{"remove ipset cilium_x: it is of type hash:net now: " + another}, func() string { return run(t, "ipset", "list") }, func() { run(t, "ipset", "destroy", "cilium_x") }}
		},
		"mount, by one over it": func(t *testing.T) replaced {
			at, found := tmpfsOnly(t)
			return replaced{found, func() { require.NoError(t, unix.Mount("another", at, "tmpfs", 0, "")) },
				[]string{"remove mount " + at + ": a tmpfs was mounted over it: " + another}, func() string { return mounted(t, filepath.Dir(at)) },
				func() { require.NoError(t, errors.Join(unix.Unmount(at, 0), unix.Unmount(at, 0))) }}
		},
		"mount, whose numbers another gets": func(t *testing.T) replaced {
			at, found := tmpfsOnly(t)
			return replaced{found, func() {
				require.NoError(t, errors.Join(unix.Unmount(at, 0), unix.Mount("another", at, "tmpfs", 0, "")))
			}, nil, func() string { return mounted(t, filepath.Dir(at)) }, func() { require.NoError(t, unix.Unmount(at, 0)) }}
		},
		"state directory": func(t *testing.T) replaced {
			dir := testns.TempDir(t)
			files(t, dir, "cilium/x", "new/x")
			at := filepath.Join(dir, "cilium")
			return replaced{stateOnly(at), func() {
				require.NoError(t, errors.Join(os.Rename(at, filepath.Join(dir, "old")), os.Rename(filepath.Join(dir, "new"), at)))
			}, []string{another}, func() string { return tree(t, dir) }, func() { require.NoError(t, os.RemoveAll(at)) }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			testns.Enter(t, testns.Mount|testns.Net)
			requireTools(t, "nft", "ipset")
			veth(t, "eth0", "eth1")
			r := listed(t)
			if r.look == nil {
				r.look = func() string { return everything(t) }
			}
			inv := inventory(t, r.found)
			require.NotEmpty(t, inv.Items)
			r.replace()
			before := r.look()
			err := r.found.Remove(t.Context(), inv.Items)
			require.Equal(t, r.says == nil, err == nil, err)
			for _, says := range r.says {
				require.ErrorContains(t, err, says)
				require.Equal(t, "cleanup.replaced", code.Of(err))
			}
			require.Equal(t, before, r.look())
			if r.gone != nil {
				r.gone()
				require.NoError(t, r.found.Remove(t.Context(), inv.Items), "already gone is success")
			}
		})
	}
}

// tmpfsOnly mounts a tmpfs, which is all that is found.
func tmpfsOnly(t *testing.T) (at string, found cleanup.Leftovers) {
	at = testns.TempDir(t)
	require.NoError(t, unix.Mount("ours", at, "tmpfs", 0, ""))
	own := ours()
	own.Mounts = []cleanup.MountRule{{Path: at, Type: "tmpfs"}}
	return at, cleanup.Leftovers{Ownership: excepting(own), Scope: "all-state", CgroupRoot: noCgroup}
}
