// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package installers has the installers of other CNI agents: the objects that each leaves
// on a node, read from its sources, and the same installer as its author would write it
// with our packages. Its tests rebuild the cases with which Calico and AWS test their own
// installers, and move a node from the old installer to the new one and back:
//
//	go test -v -run Cases ./internal/verify/installers     # all cases, and how many agree with theirs
//	go test -v -run Migration ./internal/verify/installers # old, ours, old, ours, uninstalled; killed at 50 points
//
// An [Installation] holds the objects that an old installer leaves. Each object names its
// source: a file of a repository, at the installation's release. Objects that a running
// agent writes are not the installer's, and are left out, except for Cilium's network
// configuration, which only its agent writes. So are files in /tmp, which a throw-away
// node shares with the machine: Cilium's nodeinit leaves /tmp/cilium-bootstrap.d there.
//
// A [Setting] is the environment of the new installers: [Cilium], [AWS] and [Calico] are
// made from one, and their Plan is all that such a program adds.
package installers
