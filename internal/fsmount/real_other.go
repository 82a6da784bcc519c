// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package fsmount

import (
	"io/fs"
	"os"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("mounts are looked for and made on Linux only")

// Stat is unsupported.
func (Real) Stat(string) (fstype, root, mount string, err error) {
	return "", "", "", errNotLinux
}

// Mount is unsupported.
func (Real) Mount(_, _, _, _ string) error { return errNotLinux }

// Unmount is unsupported.
func (Real) Unmount(string) error { return errNotLinux }

// Open opens a file or directory.
func (Real) Open(name string) (fs.File, error) { return os.Open(name) }
