// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package once lets the sources of one resolution read shared objects once.
package once

import (
	"context"

	"github.com/slipway-dev/slipway/internal/perrun"
)

type contextKey struct{}

// answer may be an error, which is remembered too.
type answer[T any] struct {
	value T
	err   error
}

// With begins a resolution, whose sources get the returned context.
func With(ctx context.Context) context.Context {
	return perrun.With(context.WithValue(ctx, contextKey{}, true))
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
	if ctx.Value(contextKey{}) == nil {
		return read(ctx)
	}
	a, _ := perrun.Do(ctx, key, func(ctx context.Context) (answer[T], error) {
		value, err := read(ctx)
		return answer[T]{value, err}, nil
	})
	return a.value, a.err
}
