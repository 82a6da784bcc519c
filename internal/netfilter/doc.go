// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package netfilter asks the kernel for what netfilter has, and runs no tool: the
// chains and rules of iptables-nft, tables of nftables and ipsets, which it also
// deletes, by netlink; the chains of legacy iptables by a socket's options.
//
// The chains of iptables-nft and ip6tables-nft are in nf_tables, in tables of
// the names of iptables' own. A rule is deleted by its handle, which no text can
// mistake.
//
// A [Conn] acts in the network namespace of the thread that opened it, all else in
// that of the calling thread. It starts no goroutine.
package netfilter
