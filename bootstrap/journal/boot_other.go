// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package journal

import "os"

func bootID() (string, error) { return "", nil }
func flock(*os.File) bool     { return true }
func funlock(*os.File)        {}
