// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

// For the tests of what a runtime can answer.
var (
	ParseStatus    = parseStatus
	ParseCNIConfig = parseCNIConfig
	ParseConfig    = parseConfig
	ParseSandboxes = parseSandboxes
)
