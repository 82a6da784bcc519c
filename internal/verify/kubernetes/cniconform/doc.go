// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniconform holds tests of package cniinstall against what reads its
// folders on a node: libcni, the loader of containerd (containerd/go-cni) behind
// a loop that reloads at the same events as containerd's, and the reference
// plugins. It is a module of its own, so that nothing of theirs reaches a user
// of this one.
//
// The plugins are those of the Debian package containernetworking-plugins; a
// test that needs them skips where they are missing. It makes pods' network
// namespaces, and the host's, anew, and throws them away.
package cniconform
