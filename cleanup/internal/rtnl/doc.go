// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package rtnl reads objects of rtnetlink(7) and xfrm's netlink of which
// github.com/vishvananda/netlink leaves out or misreads what identifies them, on its package
// nl, and deletes them by that: XDP programs of a link beside the first, the block of an
// egress, filters without options, the selectors of a rule, the attributes that distinguish a
// route from another, and addresses of IPsec whose end is 0. Unseen objects cannot be spared.
//
// A [Conn] acts in the network namespace of the thread that first asked by it. It starts no
// goroutine.
package rtnl
