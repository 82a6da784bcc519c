// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package once is what one run of a plan remembers, from its check to its end, so that what
// takes long or may differ is asked once.
package once

import (
	"context"
	"sync"
)

type runKey struct{}

// run has what was found in it.
type run struct {
	mu    sync.Mutex
	found map[any]any
}

// InRun returns the context of a run, which remembers.
func InRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, runKey{}, &run{found: map[any]any{}})
}

// Do returns what find has found for the key in the context's run, and calls it where that is
// nothing yet: outside of a run each time, and again after an error. What find calls may use Do.
func Do[T any](ctx context.Context, key any, find func() (T, error)) (T, error) {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return find()
	}
	if found, ok := r.get(key).(T); ok {
		return found, nil
	}
	found, err := find()
	if err == nil {
		r.put(key, found)
	}
	return found, err
}

func (r *run) get(key any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[key]
}

func (r *run) put(key, found any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[key] = found
}
