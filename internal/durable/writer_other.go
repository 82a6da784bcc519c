// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package durable

import "os"

// awaitNoWriter is for Linux.
func awaitNoWriter(*os.File) {}
