// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package installers has the installers of other CNI agents: what each leaves on a node,
// read from its sources, and the same installer as its author would write it on our
// packages. Its tests rebuild the cases that Calico and AWS test their own installers
// with, and move a node from the old installer to the new one and back:
//
//	go test -v -run Cases ./internal/verify/installers     # all cases, and how many are as theirs
//	go test -v -run Migration ./internal/verify/installers # old, ours, old, ours, uninstalled; killed at 50 points
//
// An [Installation] is what an old installer leaves. Each object in it says where that
// can be read: a repository's file, at the installation's release. What an agent itself
// writes while it runs is not the installer's, and is left out, but for the network
// configuration of Cilium, which only its agent writes. So is what goes to /tmp, which a
// throw-away node shares with the machine: Cilium's nodeinit leaves
// /tmp/cilium-bootstrap.d there.
//
// A [Setting] is where the new installers work: [Cilium], [AWS] and [Calico] are made of
// one, and their Plan is all that such a program has of its own.
package installers
