// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package cniinstall

import (
	"fmt"
	"io/fs"
	"os"
)

const hasModes = false

func ownerOf(fs.FileInfo) (uid, gid int) { return os.Geteuid(), os.Getegid() }

func identity(fs.FileInfo) string { return "" }

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
