// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package fsmount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

func linuxOnly(op string) error {
	return fmt.Errorf("%s on %s: %w", op, runtime.GOOS, errors.ErrUnsupported)
}

// Stat is unsupported.
func (Real) Stat(string) (fstype, root, mount string, err error) {
	return "", "", "", linuxOnly("look for mounts")
}

// Mount is unsupported.
func (Real) Mount(_, _, _, _ string) error { return linuxOnly("mount") }

// Unmount is unsupported.
func (Real) Unmount(string) error { return linuxOnly("unmount") }

// Open opens a file or directory.
func (Real) Open(name string) (fs.File, error) { return os.Open(name) }
