// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package once lets the sources of one resolution read shared objects once.
package once

import (
	"context"
	"sync"
)

type contextKey struct{}

// store holds the objects that the sources of one resolution have read.
type store struct {
	mu    sync.Mutex
	cells map[any]*cell
}

type cell struct {
	once  sync.Once
	value any
	err   error
}

// With begins a resolution, whose sources get the returned context.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &store{cells: map[any]*cell{}})
}

// Within begins a resolution, unless ctx already belongs to one.
func Within(ctx context.Context) context.Context {
	if ctx.Value(contextKey{}) != nil {
		return ctx
	}
	return With(ctx)
}

// Do calls read the first time that a resolution asks for key, and returns
// the same answer, or error, to every later source of that resolution. So
// sources that need the same object (a Node's labels and its annotations) read
// it once, and the next resolution reads it anew. Outside a resolution it just
// calls read. key must be comparable and of a type of the caller's own package;
// one key always goes with one T.
func Do[T any](ctx context.Context, key any, read func(context.Context) (T, error)) (T, error) {
	s, ok := ctx.Value(contextKey{}).(*store)
	if !ok {
		return read(ctx)
	}
	c := s.cell(key)
	c.once.Do(func() { c.value, c.err = read(ctx) })
	value, _ := c.value.(T)
	return value, c.err
}

func (s *store) cell(key any) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.cells[key]
	if !ok {
		c = &cell{}
		s.cells[key] = c
	}
	return c
}
