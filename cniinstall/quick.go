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

// quickSum hashes what is written to it about as fast as memory gives it: each
// window by itself, so that several readers can share a file, and then the
// hashes. It tells versions apart; it is no protection from somebody who means
// two to look alike, who would be root on the node by then. A nil one hashes
// nothing.
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

func (q *quickSum) add(p []byte) {
	if q == nil {
		return
	}
	for len(p) > 0 {
		n := min(int64(len(p)), window-q.have)
		q.window.Write(p[:n])
		if p, q.have = p[n:], q.have+n; q.have == window {
			q.flush()
		}
	}
}

func (q *quickSum) flush() {
	if q.have > 0 {
		q.sums = binary.LittleEndian.AppendUint64(q.sums, q.window.Sum64())
		q.window.Reset()
		q.have = 0
	}
}

func (q *quickSum) String() string {
	if q == nil {
		return ""
	}
	q.flush()
	return quickText(q.sums)
}

func quickText(sums []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(sums)) }

// quickOf is the quick hash of content, which a file is read for by several
// readers. What is not of the size given, or no longer, has none.
func quickOf(ctx context.Context, content io.Reader, size int64) (string, error) {
	if f, ok := content.(*os.File); ok {
		return quickOfFile(ctx, f, size)
	}
	q, have := newQuickSum(), int64(0)
	content = io.LimitReader(content, size+1)
	for buf := make([]byte, piece); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := io.ReadFull(content, buf)
		q.add(buf[:n])
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
