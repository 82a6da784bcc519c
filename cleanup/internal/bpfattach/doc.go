// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpfattach lists the BPF programs attached to a network link or a cgroup, and
// detaches them.
//
// A network link is one of the network namespace of the calling thread.
// bpf_links are those of the whole machine. It starts no goroutine.
package bpfattach
