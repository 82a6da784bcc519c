// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"slices"
	"strings"
)

// nameBytes is how much of a program's name the kernel stores (BPF_OBJ_NAME_LEN).
const nameBytes = 15

// linkMark stands for a link's name in the name of a filter.
const linkMark = "{link}"

// ciliumPrograms returns the entry points in bpf/*.c of Cilium 1.14 to 1.20: what its
// loader attaches to links and cgroups. Programs behind a tail call are not attached to
// anything.
func ciliumPrograms() []string {
	return append(ciliumLinkPrograms(),
		"cil_xdp_entry",
		"cil_host_policy", "cil_lxc_policy", "cil_lxc_policy_egress", // from 1.18
		"cil_sock4_connect", "cil_sock4_getpeername", "cil_sock4_post_bind", "cil_sock4_pre_bind", "cil_sock4_recvmsg", "cil_sock4_sendmsg",
		"cil_sock6_connect", "cil_sock6_getpeername", "cil_sock6_post_bind", "cil_sock6_pre_bind", "cil_sock6_recvmsg", "cil_sock6_sendmsg",
		"cil_sock_release",                                   // from 1.18
		"cil_sock_tcp_destroy_v4", "cil_sock_tcp_destroy_v6", // from 1.19
		"cil_sock_udp_destroy_v4", "cil_sock_udp_destroy_v6",
	)
}

// ciliumLinkPrograms are those for tc, tcx and netkit.
func ciliumLinkPrograms() []string {
	return []string{
		"cil_from_container", "cil_to_container",
		"cil_from_host", "cil_to_host",
		"cil_from_netdev", "cil_to_netdev",
		"cil_from_network", // up to 1.19
		"cil_from_overlay", "cil_to_overlay",
		"cil_from_wireguard", "cil_to_wireguard", // from 1.16
	}
}

// ciliumFilters are the names that Cilium gives to tc filters: program and link
// from 1.14 on (pkg/datapath/loader), "cilium" and link in 1.13, and before that
// what iproute2 made of an object file and its section.
func ciliumFilters() []string {
	names := []string{
		"cilium-" + linkMark,
		"bpf_netdev.o:[from-netdev]", "bpf_netdev.o:[to-netdev]",
		"bpf_netdev_" + linkMark + ".o:[from-netdev]", "bpf_netdev_" + linkMark + ".o:[to-netdev]",
		"bpf_netdev_" + linkMark + ".o:[from-host]", "bpf_netdev_" + linkMark + ".o:[to-host]",
		"bpf_network.o:[from-network]",
		"bpf_host.o:[from-host]", "bpf_host.o:[to-host]", "bpf_host.o:[from-netdev]", "bpf_host.o:[to-netdev]",
		"bpf_lxc.o:[from-container]", "bpf_lxc.o:[to-container]",
		"bpf_overlay.o:[from-overlay]", "bpf_overlay.o:[to-overlay]",
	}
	for _, program := range ciliumLinkPrograms() {
		names = append(names, program+"-"+linkMark)
	}
	return names
}

// validNames refuses names that nearly anything could have.
func validNames(names []string) error {
	for _, name := range names {
		if strings.Trim(strings.ReplaceAll(name, linkMark, ""), "-_. ") == "" {
			return fmt.Errorf("cleanup: ownership: %q is not the name of a program or a filter", name)
		}
	}
	return nil
}

// isProgram reports whether a program's name, as the kernel reports it, is one of the
// full names.
func isProgram(name string, full []string) bool {
	return name != "" && slices.ContainsFunc(full, func(f string) bool { return name == f[:min(len(f), nameBytes)] })
}

// isFilter reports whether a filter's name is one of names on the given link; a
// block of filters that several links share has no link.
func isFilter(name, link string, names []string) bool {
	return name != "" && slices.ContainsFunc(names, func(n string) bool {
		return name == strings.ReplaceAll(n, linkMark, link) && (link != "" || !strings.Contains(n, linkMark))
	})
}
