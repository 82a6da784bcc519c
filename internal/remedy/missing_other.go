// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package remedy

// Missing returns all of them: other systems have none.
func Missing(caps ...Capability) []Capability { return caps }
