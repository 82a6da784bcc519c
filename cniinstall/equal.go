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

// equalFiles compares two files as [equal] does, with several readers:
// where two processors are free, two files take as long as one to read. The
// goroutines use the open files only, which are the same in every namespace,
// and have ended when it returns.
func equalFiles(ctx context.Context, a, b *os.File) (bool, error) {
	c := &comparison{a: a, b: b}
	if same, err := c.measure(); err != nil || !same {
		return false, err
	}
	var others sync.WaitGroup
	for range min(maxReaders, runtime.GOMAXPROCS(0), int(c.size/window)+1) - 1 {
		others.Go(func() { c.run(ctx) })
	}
	c.run(ctx)
	others.Wait()
	if err := errors.Join(c.errs...); err != nil {
		return false, err
	}
	return !c.differ.Load(), nil
}

// comparison is of two files of one size, window by window.
type comparison struct {
	a, b   *os.File
	size   int64
	next   atomic.Int64 // the first byte that nobody reads yet
	differ atomic.Bool
	mu     sync.Mutex
	errs   []error
}

// measure reports whether the files have the same size, which it notes.
func (c *comparison) measure() (bool, error) {
	a, err := c.a.Stat()
	if err != nil {
		return false, err
	}
	b, err := c.b.Stat()
	if err != nil {
		return false, err
	}
	c.size = a.Size()
	return a.Size() == b.Size(), nil
}

// run compares windows until there are none, or the answer is clear.
func (c *comparison) run(ctx context.Context) {
	bufs := make([]byte, 2*piece)
	for !c.differ.Load() {
		from := c.next.Add(window) - window
		if from >= c.size {
			return
		}
		size := min(window, c.size-from)
		same, err := equal(ctx, io.NewSectionReader(c.a, from, size), io.NewSectionReader(c.b, from, size), bufs)
		if err != nil {
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
		}
		if !same {
			c.differ.Store(true)
		}
	}
}

func realError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
