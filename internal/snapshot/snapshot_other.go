// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package snapshot

import "io/fs"

func owner(fs.FileInfo) string { return "" }

func sameDevice(fs.FileInfo, fs.FileInfo) bool { return true }
