// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package kube

import "github.com/slipway-dev/slipway/internal/unsupported"

func setMark(uintptr, uint32) error {
	return unsupported.Error("packets are marked on Linux only")
}
