// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package journal

import (
	"io/fs"
	"os"

	"github.com/slipway-dev/slipway/internal/durable"
)

// Other systems do not read extended attributes.

func xattrs(*os.File) (map[string][]byte, error)                { return nil, nil }
func dirXattrs(*durable.Dir, string) (map[string][]byte, error) { return nil, nil }
func setXattrs(*os.File, map[string][]byte) error               { return nil }
func unchangedSince(_, _ fs.FileInfo) bool                      { return true }
