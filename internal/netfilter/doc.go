// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package netfilter asks the kernel for netfilter's objects, and runs no tool. It lists
// and deletes the chains and rules of iptables-nft, tables of nftables and ipsets by
// netlink, and lists the chains of legacy iptables by socket options.
//
// The chains of iptables-nft and ip6tables-nft are in nf_tables, in tables with the names
// of iptables' own. A rule is deleted by its handle, which is unambiguous, unlike its
// text.
//
// It acts in the network namespace of the calling thread, and starts no goroutine.
package netfilter
