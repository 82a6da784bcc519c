// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniconform tests package cniinstall against the readers of its folders on a node:
// libcni, the loader of containerd (containerd/go-cni) behind a loop that reloads at the same
// events as containerd, and the reference plugins. It is a separate module, so that a user of
// this one gets none of their dependencies.
//
// The plugins are those of the Debian package containernetworking-plugins; a test that needs
// them skips if they are missing. It makes network namespaces for pods and for the host, and
// throws them away.
package cniconform
