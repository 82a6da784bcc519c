// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package iptables lists and deletes chains and rules of legacy iptables by the host's
// own tools: it parses the output of iptables-legacy-save, and passes
// iptables-legacy-restore only deletions.
//
// It acts in the network namespace of the calling thread, runs the tools of the
// thread's mount namespace, with an environment of their own, and runs none
// where the kernel has no legacy table. It starts no goroutine but those that
// feed a tool, which end with it.
package iptables
