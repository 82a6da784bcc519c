// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package once lets a fact be determined once that is needed several times: by the actions
// of one run of a plan, which checks an action, applies it and checks it again, or by the
// sources of one resolution.
package once

import (
	"context"
	"sync"
)

type (
	run        struct{}
	resolution struct{}
)

// With begins a run, whose actions are given the context.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, run{}, &sync.Map{})
}

// WithResolution begins a resolution, which is a run of its own.
func WithResolution(ctx context.Context) context.Context {
	return With(context.WithValue(ctx, resolution{}, true))
}

// WithinResolution begins a resolution, unless ctx already belongs to one.
func WithinResolution(ctx context.Context) context.Context {
	if ctx.Value(resolution{}) != nil {
		return ctx
	}
	return WithResolution(ctx)
}

type cell[T any] struct {
	sync.Mutex
	known bool
	value T
}

// Do calls find the first time that a run asks for key, and returns the same answer for
// the rest of that run. An error is not remembered. Outside a run it just calls find. key
// must be comparable and of a type of the caller's own package; one key always goes with
// one T.
func Do[T any](ctx context.Context, key any, find func(context.Context) (T, error)) (T, error) {
	found, ok := ctx.Value(run{}).(*sync.Map)
	if !ok {
		return find(ctx)
	}
	stored, _ := found.LoadOrStore(key, &cell[T]{})
	c := stored.(*cell[T])
	c.Lock()
	defer c.Unlock()
	if c.known {
		return c.value, nil
	}
	value, err := find(ctx)
	c.value, c.known = value, err == nil
	return value, err
}

// answer may be an error, which is remembered too.
type answer[T any] struct {
	value T
	err   error
}

// Read is Do for the sources of a resolution, which get the same error, too: an object that
// several need, such as a Node with its labels and annotations, is read once, and anew by
// the next resolution. Outside a resolution it just calls read.
func Read[T any](ctx context.Context, key any, read func(context.Context) (T, error)) (T, error) {
	if ctx.Value(resolution{}) == nil {
		return read(ctx)
	}
	a, _ := Do(ctx, key, func(ctx context.Context) (answer[T], error) {
		value, err := read(ctx)
		return answer[T]{value, err}, nil
	})
	return a.value, a.err
}
