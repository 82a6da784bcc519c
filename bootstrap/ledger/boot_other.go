// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package ledger

// bootID returns one name for all boots: they are told apart on Linux only.
func bootID() (string, error) { return "unknown", nil }
