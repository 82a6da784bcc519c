// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	piece      = 128 << 10 // bytes read at a time: two of them stay in the processor's cache
	window     = 2 << 20   // bytes of a file that one reader takes at a time
	maxReaders = 4
)

// equal compares two streams, reading each once, with bufs of two pieces.
func equal(ctx context.Context, a, b io.Reader, bufs []byte) (bool, error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, errA := io.ReadFull(a, bufs[:piece])
		m, errB := io.ReadFull(b, bufs[piece:])
		if err := errors.Join(realError(errA), realError(errB)); err != nil {
			return false, err
		}
		if n != m || !bytes.Equal(bufs[:n], bufs[piece:piece+m]) {
			return false, nil
		}
		if n < piece {
			return true, nil
		}
	}
}

// equalFiles compares two files as [equal] does, with several readers: where two
// processors are free, two files take little longer than one to read.
func equalFiles(ctx context.Context, a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil || infoA.Size() != infoB.Size() {
		return false, err
	}
	return inWindows(infoA.Size(), func(from, size int64, bufs []byte) (bool, error) {
		return equal(ctx, io.NewSectionReader(a, from, size), io.NewSectionReader(b, from, size), bufs)
	})
}

// inWindows calls do for each window of size bytes, in several goroutines, each
// with two pieces of its own to read into, and reports whether all were good.
// After one that was not, or an error, no other is begun. The goroutines may use
// open files only, which are the same in every namespace, and have ended when it
// returns.
func inWindows(size int64, do func(from, size int64, bufs []byte) (good bool, err error)) (bool, error) {
	readers := min(maxReaders, runtime.GOMAXPROCS(0), int(size/window)+1)
	errs := make([]error, readers)
	var next atomic.Int64 // the first byte that nobody reads yet
	var bad atomic.Bool
	read := func(reader int) {
		bufs := make([]byte, 2*piece)
		for !bad.Load() {
			from := next.Add(window) - window
			if from >= size {
				return
			}
			good, err := do(from, min(window, size-from), bufs)
			if errs[reader] = err; err != nil || !good {
				bad.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	for reader := 1; reader < readers; reader++ {
		others.Go(func() { read(reader) })
	}
	read(0)
	others.Wait()
	return !bad.Load(), errors.Join(errs...)
}

func realError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
