// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package nlread reads the kernel's objects by netlink(7), on package nl of
// github.com/vishvananda/netlink: dumps, which are repeated if a change has interrupted
// them, and attributes. Only its users interpret them. It starts no goroutine.
package nlread
