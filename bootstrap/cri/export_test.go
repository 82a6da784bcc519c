// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

// For tests of a runtime's answers.
var (
	ParseStatus    = parseStatus
	ParseCNIConfig = parseCNIConfig
	ParseConfig    = parseConfig
	ParseSandboxes = parseSandboxes
)

// RPCError is what the runtime answered.
type RPCError = rpcError
