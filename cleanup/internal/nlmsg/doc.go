// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package nlmsg has what all protocols of netlink(7) have in common: a socket of
// the calling thread's network namespace, attributes, and dumps that are
// repeated where a change has interrupted them.
package nlmsg
