// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package cniinstall

import (
	"fmt"
	"os"
)

const hasModes = false

// appearance describes the file at path without reading it.
func appearance(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	if info.IsDir() {
		return "directory"
	}
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
}

// lastChange identifies a folder; the time of its last change is unknown.
func lastChange(dir string) (description string, settled bool) { return appearance(dir), false }
