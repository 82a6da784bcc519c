// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package perrun lets the actions of a plan determine a fact once per run that they need
// several times: a plan checks an action, applies it, and checks it again.
package perrun

import (
	"context"
	"sync"
)

type contextKey struct{}

// found holds the facts that the actions of one run have determined.
type found struct {
	mu    sync.Mutex
	cells map[any]*cell
}

type cell struct {
	mu    sync.Mutex
	known bool
	value any
}

// With begins a run, whose actions are given the context.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &found{cells: map[any]*cell{}})
}

// Do calls find the first time that a run asks for key, and returns the same answer for
// the rest of that run. An error is not remembered. Outside a run it just calls find. key
// must be comparable and of a type of the caller's own package; one key always goes with
// one T.
func Do[T any](ctx context.Context, key any, find func(context.Context) (T, error)) (T, error) {
	f, ok := ctx.Value(contextKey{}).(*found)
	if !ok {
		return find(ctx)
	}
	c := f.cell(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.value.(T), nil
	}
	value, err := find(ctx)
	c.value, c.known = value, err == nil
	return value, err
}

func (f *found) cell(key any) *cell {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.cells[key]
	if !ok {
		c = &cell{}
		f.cells[key] = c
	}
	return c
}
