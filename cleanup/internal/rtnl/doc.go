// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package rtnl lists and deletes what rtnetlink(7) and xfrm's netlink know:
// links, XDP programs on them, qdiscs and filters of traffic control, routes,
// rules, IPsec policies and states.
//
// It sees what libraries for netlink leave out, for what is not seen cannot be
// spared: filters without options, the block of an egress, the selectors of a
// rule, the attributes of a route that tell it from another, and all XDP programs
// of a link but one.
//
// A [Conn] acts in the network namespace of the thread that opened it. It starts
// no goroutine.
package rtnl
