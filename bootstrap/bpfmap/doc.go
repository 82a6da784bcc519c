// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpfmap keeps the BPF maps of an agent over its restarts: each is pinned on
// a BPF file system, made where it is missing, and replaced where the agent's newer
// version needs another.
//
//	maps := bpfmap.Pinned{Dir: "/sys/fs/bpf/agent", Maps: []*ebpf.MapSpec{endpoints}, Journal: j}
//	err := maps.Apply(ctx)
//	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/agent/endpoints", nil)
//
// A pinned map with the type, sizes and flags of its spec is not touched: what is in
// it is what the agent knew before. One that differs is no use to the newer programs,
// and a loader refuses it ([ebpf.ErrMapIncompatible]). In its place comes an empty
// one, by a rename: at no moment is there none. Programs that are loaded have the old
// one until they are replaced themselves. What is in it is lost, which Check says
// before, and the report of a plan after.
//
// # Undoing
//
// A pin that Apply has made is recorded in a journal, with the map's id, and
// [Handler] removes it: by then an uninstalled agent's programs are gone, and the map
// with its last user. A pin that was there before, or that somebody else has put in
// ours' place since, is not touched. The content of a map that was replaced does not
// come back.
//
// # What it needs
//
// Linux, and a mounted BPF file system: put it into a plan after a bpffs.Mount. To
// make a map takes CAP_BPF (before kernel 5.8, and for some types, CAP_SYS_ADMIN or
// CAP_NET_ADMIN), and before kernel 5.11 enough RLIMIT_MEMLOCK, which is the
// program's to raise (package rlimit of github.com/cilium/ebpf). It acts in the
// calling thread's mount namespace. On other systems its errors match
// [errors.ErrUnsupported].
//
// # When not to use it
//
// Where what is in an incompatible map has to be carried over: that takes a program
// that knows both. Nor for maps that no restart has to survive.
package bpfmap
