// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"errors"
	"io"
)

// piece is the number of bytes read from a stream at a time: two pieces fit into
// the processor's cache.
const piece = 128 << 10

// equal compares two streams, reading each once.
func equal(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, piece), make([]byte, piece)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if err := errors.Join(realError(errA), realError(errB)); err != nil {
			return false, err
		}
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if n < piece {
			return true, nil
		}
	}
}

func realError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
