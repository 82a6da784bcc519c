// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"net"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// bpfRoot is where the throw-away mount namespace has its BPF file system.
const bpfRoot = "/sys/fs/bpf"

// enter gives the thread a network namespace and a mount namespace, in which
// nothing of the machine can be removed by mistake.
func enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	for _, m := range [][2]string{{"tmpfs", "/run"}, {"tmpfs", "/var/lib"}, {"tmpfs", "/etc/cni"}, {"tmpfs", "/opt/cni"}, {"bpf", bpfRoot}} {
		if _, err := os.Stat(m[1]); os.IsNotExist(err) {
			continue
		}
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m[0], m[1], err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// newNamespace makes another network namespace; it lives until it is closed.
func newNamespace() (netns.NsHandle, error) {
	here, err := netns.Get()
	if err != nil {
		return -1, err
	}
	defer here.Close()
	other, err := netns.New()
	if err != nil {
		return -1, err
	}
	return other, netns.Set(here)
}

// endpoints makes links as an agent makes them: a veth that is up with its
// peer in another namespace, a clsact with a filter, and routes.
func endpoints(n int, tcx bool, pods netns.NsHandle) error {
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, Name: "cil_from_contai", License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer prog.Close()
	for i := range n {
		if err := endpoint(h, i, pods, prog, tcx); err != nil {
			return fmt.Errorf("endpoint %d: %w", i, err)
		}
	}
	return nil
}

func endpoint(h *netlink.Handle, i int, pods netns.NsHandle, prog *ebpf.Program, tcx bool) error {
	veth := &netlink.Veth{
		// Five digits, as Cilium's cleanup looks for names of eight characters.
		LinkAttrs:     netlink.LinkAttrs{Name: fmt.Sprintf("lxc%05x", i)},
		PeerName:      fmt.Sprintf("p%05x", i),
		PeerNamespace: netlink.NsFd(pods),
	}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	if err := h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("set link up: %w", err)
	}
	for _, dst := range []*net.IPNet{
		{IP: net.IPv4(10, 0, byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)},
		{IP: net.IP{0xfd, 14: byte(i >> 8), 15: byte(i)}, Mask: net.CIDRMask(128, 128)},
	} {
		if err := h.RouteAdd(&netlink.Route{LinkIndex: veth.Index, Dst: dst, Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("add route: %w", err)
		}
	}
	if tcx {
		// Nothing but its link holds a program that is attached like this.
		return link.RawAttachProgram(link.RawAttachProgramOptions{Target: veth.Index, Program: prog, Attach: ebpf.AttachTCXIngress})
	}
	if err := h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: veth.Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}); err != nil {
		return fmt.Errorf("add clsact: %w", err)
	}
	err := h.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: veth.Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          prog.FD(), Name: "cil_from_container-lxc", DirectAction: true,
	})
	if err != nil {
		return fmt.Errorf("add filter: %w", err)
	}
	return nil
}

func countLinks() (int, error) {
	links, err := netlink.LinkList()
	return len(links), err
}
