// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// See is what the record says was seen of an open file.
func See(f *os.File) (string, bool) {
	s, ok := see(f)
	return s.String(), ok
}

// RelyOnTimes makes the times of the file system of f count, and says whether they
// did not before; undo takes it back.
func RelyOnTimes(f *os.File) (added bool, undo func(), err error) {
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &on); err != nil {
		return false, nil, err
	}
	kind := uint32(on.Type)
	if timekeepers[kind] {
		return false, func() {}, nil
	}
	timekeepers[kind] = true
	return true, func() { delete(timekeepers, kind) }, nil
}

// Settle waits until a change of the file would show.
func Settle(f *os.File) {
	s, _ := see(f)
	s.settle()
}

// QuickOf is the quick hash of what has the given size.
func QuickOf(ctx context.Context, r io.Reader, size int64) (string, error) {
	return quickOf(ctx, r, size)
}
