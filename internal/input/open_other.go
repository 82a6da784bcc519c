// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package input

const (
	nonBlock = 0 // no file waits in open
	onlyDir  = 0
)
