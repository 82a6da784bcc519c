// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package nlmsg speaks netlink(7): a socket of the calling thread's network
// namespace, requests and the kernel's answers, attributes, and dumps that are repeated
// if a change has interrupted them. Only its users interpret the messages.
package nlmsg
