// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package durable

import "os"

// awaitNoWriter is for Linux.
func awaitNoWriter(*os.File) {}

// walk opens the directory; only on Linux are the links on the way looked at.
func walk(path string) (*os.File, error) { return os.Open(path) }

// OpenVetted opens what is at path; only on Linux is it vetted.
func OpenVetted(_ *os.File, path string) (*os.File, error) { return os.Open(path) }

func (d *Dir) renameNew(from, to string) error { return d.renameChecked(from, to) }

// InMemory reports false: only on Linux is it known.
func (d *Dir) InMemory() (bool, error) { return false, nil }

// Follow returns where the symbolic link name leads.
func (d *Dir) Follow(name string) (string, error) { return d.Readlink(name) }
