// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package durable

import (
	"os"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// awaitNoWriter does nothing: it is needed on Linux only.
func awaitNoWriter(*os.File) {}

// walk opens the directory; links on the way are vetted on Linux only.
func walk(path string) (*os.File, error) { return os.Open(path) }

// OpenVetted opens the object at path; it is vetted on Linux only.
func OpenVetted(_ *os.File, path string) (*os.File, error) { return os.Open(path) }

func (d *Dir) renameNew(from, to string) error { return d.renameChecked(from, to) }

// InMemory returns false: it is known on Linux only.
func (d *Dir) InMemory() (bool, error) { return false, nil }

// Resolve returns the path without symbolic links; they are vetted on Linux only.
func Resolve(path string) (string, error) { return mountinfo.Resolve(path) }
