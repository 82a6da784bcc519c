// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package reconcile

import "os"

func lookAt(path string) appearance {
	info, err := os.Lstat(path)
	if err != nil {
		return appearance{path: path, err: err.Error()}
	}
	return appearance{path: path, mode: uint32(info.Mode()), size: info.Size(), modified: info.ModTime().UnixNano()}
}
