// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"sync"
)

type onceKey struct{}

// onceStore holds what the sources of one resolution have read.
type onceStore struct {
	mu    sync.Mutex
	cells map[any]*onceCell
}

type onceCell struct {
	once  sync.Once
	value any
	err   error
}

func withOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, &onceStore{cells: map[any]*onceCell{}})
}

// Once calls read the first time that a resolution asks for key, and returns
// the same answer, or error, to every later source of that resolution. So
// sources that need the same object (a Node's labels and its annotations) read
// it once, and the next resolution reads it anew. Outside a resolution it just
// calls read. key must be comparable and of a type of the caller's own package;
// one key always goes with one T.
func Once[T any](ctx context.Context, key any, read func(context.Context) (T, error)) (T, error) {
	store, ok := ctx.Value(onceKey{}).(*onceStore)
	if !ok {
		return read(ctx)
	}
	cell := store.cell(key)
	cell.once.Do(func() { cell.value, cell.err = read(ctx) })
	value, _ := cell.value.(T)
	return value, cell.err
}

func (s *onceStore) cell(key any) *onceCell {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.cells[key]
	if !ok {
		c = &onceCell{}
		s.cells[key] = c
	}
	return c
}
