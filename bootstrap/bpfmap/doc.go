// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpfmap keeps the BPF maps of an agent over its restarts: each is pinned on a
// BPF file system, created if it is missing, and replaced if a newer version of the agent
// needs another.
//
//	maps := bpfmap.Pinned{Dir: "/sys/fs/bpf/agent", Maps: []*ebpf.MapSpec{endpoints}}
//	err := ledger.Apply(ctx, maps) // or as a step of a plan, which records it
//	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/agent/endpoints", nil)
//
// A pinned map with the type, sizes and flags of its spec is not touched: it keeps the
// agent's earlier content. One that differs is useless to the newer programs, and a
// loader refuses it ([ebpf.ErrMapIncompatible]). An empty map replaces it by a rename, so
// that there is a map at all times. Loaded programs keep the old map until they are
// replaced themselves. Its content is lost; Check reports that beforehand, and the report
// of a plan afterwards.
//
// # Undoing
//
// A pin that a plan has made is recorded with the map's id, and undoing removes it: by then an uninstalled agent's programs are gone, and the map
// goes with its last user. A pin that existed before, or that another program has put in
// the place of ours since, is not touched. The content of a map that was replaced does
// not come back.
//
// # What it needs
//
// Linux, and a mounted BPF file system: put it into a plan after a bpffs.Mount. Creating
// a map takes CAP_BPF (before kernel 5.8, and for some types, CAP_SYS_ADMIN or
// CAP_NET_ADMIN), and before kernel 5.11 enough RLIMIT_MEMLOCK, which the program must
// raise (package rlimit of github.com/cilium/ebpf). It acts in the calling thread's mount
// namespace. On other systems its errors match [errors.ErrUnsupported].
//
// # When not to use it
//
// If the content of an incompatible map must be carried over: that takes a program that
// knows both layouts. For maps that need not survive a restart.
package bpfmap
