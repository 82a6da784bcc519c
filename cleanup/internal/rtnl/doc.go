// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package rtnl lists and deletes objects of rtnetlink(7) and xfrm's netlink: links, XDP
// programs on them, qdiscs and filters of traffic control, routes, rules, IPsec policies
// and states.
//
// It sees attributes that netlink libraries leave out, since unseen objects cannot be
// spared: filters without options, the block of an egress, the selectors of a rule, the
// attributes that distinguish a route from another, and all XDP programs of a link rather
// than one.
//
// A [Conn] acts in the network namespace of the thread that opened it. It starts
// no goroutine.
package rtnl
