// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package netfilter lists and deletes chains and rules of iptables-nft, and
// ipsets, by netlink.
//
// The chains of iptables-nft and ip6tables-nft are in nf_tables, in tables of
// the names of iptables' own. A rule is deleted by its handle, which no text can
// mistake, and the host needs no tool.
//
// A [Conn] acts in the network namespace of the thread that opened it. It starts
// no goroutine.
package netfilter
