// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command cilium is Cilium's own cilium-dbg, whose build-config is what ours is
// compared with.
package main

import "github.com/cilium/cilium/cilium-dbg/cmd"

func main() { cmd.Execute() }
