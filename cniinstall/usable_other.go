// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cniinstall

// usable is not known here: container runtimes run on Linux.
func usable(string) error { return nil }
