// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

const nonBlock = 0

func ownedByUs(fs.FileInfo) bool { return true }

func (d *Dir) mkdir(name string, mode fs.FileMode) error { return d.root.Mkdir(name, mode.Perm()) }

// Sync does nothing: directories cannot be synced here.
func (d *Dir) Sync() error { return nil }

// TryLock takes no lock: there is none here that dies with the process.
func (d *Dir) TryLock(string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}

func (d *Dir) lockTemp(string, *os.File) (*os.File, bool, error) { return nil, true, nil }
func (d *Dir) sweepFile(string) error                            { return nil }

// OthersMayWrite returns "": modes and owners are unknown here.
func (d *Dir) OthersMayWrite() string { return "" }
