// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"io"
	"os"
)

// See is what the record says was seen of an open file.
func See(f *os.File) (string, bool) {
	s, ok := see(f)
	return s.String(), ok
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
