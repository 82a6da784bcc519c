// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

// Forwarding turns IP forwarding on, as the kernel's documentation
// (networking/ip-sysctl) and agents have it: net.ipv4.ip_forward,
// net.ipv4.conf.all.forwarding (the same value under another name) and
// net.ipv6.conf.all.forwarding, which a kernel without IPv6 does not have.
//
// It sets every link's forwarding, and all.accept_redirects of IPv4 to 0;
// [Settings] and [DropIn] note these and put them back. It also turns large
// receive offload (LRO) off on every link, which is not put back.
func Forwarding() []Setting {
	return []Setting{
		{Key: "net.ipv4.ip_forward", Value: "1"},
		{Key: "net.ipv4.conf.all.forwarding", Value: "1"},
		{Key: "net.ipv6.conf.all.forwarding", Value: "1", IfExists: true},
	}
}

// Datapath is what an eBPF agent wants of the kernel before it loads programs;
// Cilium's agent (1.18) sets the same. All but the first may fail, for they
// lie outside the network namespace or came with later kernels.
//
//   - net.ipv4.conf.all.rp_filter = 0: replies may leave by another link than
//     the routing table's (networking/ip-sysctl).
//   - net.core.bpf_jit_enable = 1: programs are compiled, not interpreted
//     (admin-guide/sysctl/net).
//   - net.ipv4.fib_multipath_use_neigh = 1: a next hop that is known to be
//     dead is not chosen (networking/ip-sysctl).
//   - kernel.unprivileged_bpf_disabled = 1: bpf(2) takes a capability
//     (admin-guide/sysctl/kernel). It lasts until the next boot.
//   - kernel.timer_migration = 0: timers stay on the CPU that set them, as
//     pacing by departure time wants.
func Datapath() []Setting {
	return []Setting{
		{Key: "net.ipv4.conf.all.rp_filter", Value: "0"},
		{Key: "net.core.bpf_jit_enable", Value: "1", IgnoreFailure: true},
		{Key: "net.ipv4.fib_multipath_use_neigh", Value: "1", IgnoreFailure: true},
		{Key: "kernel.unprivileged_bpf_disabled", Value: "1", IgnoreFailure: true},
		{Key: "kernel.timer_migration", Value: "0", IgnoreFailure: true},
	}
}
