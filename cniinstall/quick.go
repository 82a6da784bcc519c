// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
)

// quickSum hashes content that is written to it, as fast as memory gives it:
// each window by itself, so that several readers can share a file, and then the
// hashes. It tells versions apart; it is no protection from somebody who means
// two to look alike, who would be root on the node by then.
type quickSum struct {
	window xxhash.Digest
	have   int64 // bytes in window
	sums   []byte
}

func newQuickSum() *quickSum {
	q := &quickSum{}
	q.window.Reset()
	return q
}

// Write never errs.
func (q *quickSum) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(int64(len(rest)), window-q.have)
		q.window.Write(rest[:n])
		if rest, q.have = rest[n:], q.have+n; q.have == window {
			q.flush()
		}
	}
	return len(p), nil
}

func (q *quickSum) flush() {
	if q.have > 0 {
		q.sums = binary.LittleEndian.AppendUint64(q.sums, q.window.Sum64())
		q.window.Reset()
		q.have = 0
	}
}

func (q *quickSum) String() string {
	q.flush()
	return quickText(q.sums)
}

func quickText(sums []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(sums)) }

// quickOf hashes content, of a file with several readers, as [quickSum] does.
// What is not of the size given, or no longer, has no hash.
func quickOf(ctx context.Context, content io.Reader, size int64) (string, error) {
	if f, ok := content.(*os.File); ok {
		return quickOfFile(ctx, f, size)
	}
	q := newQuickSum()
	content = io.LimitReader(content, size+1)
	have := int64(0)
	for buf := make([]byte, piece); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := io.ReadFull(content, buf)
		q.Write(buf[:n])
		have += int64(n)
		switch {
		case realError(err) != nil:
			return "", err
		case err != nil && have != size:
			return "", nil
		case err != nil:
			return q.String(), nil
		}
	}
}

func quickOfFile(ctx context.Context, f *os.File, size int64) (string, error) {
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return "", err
	}
	sums := make([]byte, (size+window-1)/window*8)
	whole, err := inWindows(size, func(from, size int64, bufs []byte) (bool, error) {
		var h xxhash.Digest
		h.Reset()
		for at := int64(0); at < size; at += piece {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			buf := bufs[:min(piece, size-at)]
			if n, err := f.ReadAt(buf, from+at); n < len(buf) {
				return false, realError(err) // it has become shorter
			}
			h.Write(buf)
		}
		binary.LittleEndian.PutUint64(sums[from/window*8:], h.Sum64())
		return true, nil
	})
	if err != nil || !whole {
		return "", err
	}
	return quickText(sums), nil
}
