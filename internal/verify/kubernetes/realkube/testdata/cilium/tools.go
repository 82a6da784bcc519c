// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build tools

package main

// Programs of Cilium's init containers that are built from this module too.
import (
	_ "github.com/cilium/cilium/plugins/cilium-cni"
	_ "github.com/cilium/cilium/tools/mount"
	_ "github.com/cilium/cilium/tools/sysctlfix"
)
