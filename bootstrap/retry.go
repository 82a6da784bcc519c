// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/failure"
)

// Func returns an Action made of two functions. If one is nil, its method returns an error
// that matches [errors.ErrUnsupported].
func Func(check func(context.Context) ([]string, error), apply func(context.Context) error) Action {
	return function{check, apply}
}

type function struct {
	check func(context.Context) ([]string, error)
	apply func(context.Context) error
}

func (f function) Check(ctx context.Context) ([]string, error) {
	if f.check == nil {
		return nil, fmt.Errorf("the action has no function to check with: %w", errors.ErrUnsupported)
	}
	return f.check(ctx)
}

func (f function) Apply(ctx context.Context) error {
	if f.apply == nil {
		return fmt.Errorf("the action has no function to apply with: %w", errors.ErrUnsupported)
	}
	return f.apply(ctx)
}

// Retry returns an Action that calls a method of a again for as long as it returns
// a retryable error: first after waits[0], then after waits[1], and so on, for at
// most len(waits)+1 calls. The last error is returned. If retryable is nil, every
// error is retryable.
//
// A wait ends when the context does, and no further call is made.
//
// It is for what passes by itself in a moment. In a plan's step, the waits may take
// [MaxWaits] together, also those of a Retry around another: the node is locked
// meanwhile. To wait for others, use a gate.
//
// The result is an [Undoer] if a is one. Its Advise, Namespaces and Places are those of a, or
// return nothing.
func Retry(a Action, retryable func(error) bool, waits ...time.Duration) Action {
	if a == nil {
		a = Func(nil, nil)
	}
	r := retry{a, retryable, waits}
	if undoer, ok := a.(Undoer); ok {
		return undoableRetry{r, undoer}
	}
	return r
}

type retry struct {
	action    Action
	retryable func(error) bool
	waits     []time.Duration
}

type undoableRetry struct {
	retry
	undoer Undoer
}

func (r undoableRetry) Undo(ctx context.Context) error {
	return r.do(ctx, func() error { return r.undoer.Undo(ctx) })
}

// CheckUndo matches errors.ErrUnsupported if the action has none.
func (r undoableRetry) CheckUndo(ctx context.Context) (changes []string, err error) {
	foreseer, ok := r.undoer.(foreseer)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = r.do(ctx, func() error {
		changes, err = foreseer.CheckUndo(ctx)
		return err
	})
	return changes, err
}

// retried is how a plan looks at what a Retry is around.
type retried interface{ inner() retry }

func (r retry) inner() retry { return r }

func (r retry) Check(ctx context.Context) (changes []string, err error) {
	err = r.do(ctx, func() error {
		changes, err = r.action.Check(ctx)
		return err
	})
	return changes, err
}

func (r retry) Apply(ctx context.Context) error {
	return r.do(ctx, func() error { return r.action.Apply(ctx) })
}

func (r retry) Advise(ctx context.Context) (advice []string, err error) {
	adviser, ok := r.action.(Adviser)
	if !ok {
		return nil, nil
	}
	err = r.do(ctx, func() error {
		advice, err = adviser.Advise(ctx)
		return err
	})
	return advice, err
}

func (r retry) Namespaces() []string {
	if hosted, ok := r.action.(Hosted); ok {
		return hosted.Namespaces()
	}
	return nil
}

func (r retry) Places() map[string]string {
	if p, ok := r.action.(placed); ok {
		return p.Places()
	}
	return nil
}

// do calls f until it succeeds, its error is final, or the waits are used up.
func (r retry) do(ctx context.Context, f func() error) error {
	err := f()
	for i, wait := range r.waits {
		if err == nil || !r.again(err) {
			return err
		}
		Waiting(ctx, Wait{For: "another try", Tries: i + 1, Err: err, Pause: wait})
		if stop := failure.Sleep(ctx, wait); stop != nil {
			return fmt.Errorf("%w (gave up waiting for another try: %w)", err, stop)
		}
		err = f()
	}
	if err != nil && len(r.waits) > 0 && r.again(err) {
		return fmt.Errorf("%w (after %d tries)", err, len(r.waits)+1)
	}
	return err
}

func (r retry) again(err error) bool { return r.retryable == nil || r.retryable(err) }

// longest returns how long all Retries around one another may wait together or, if that is
// more than MaxWaits, some of it that is.
func (r retry) longest() (all time.Duration) {
	bounded := func(d time.Duration) time.Duration { return max(0, min(d, 2*MaxWaits)) }
	for _, wait := range r.waits {
		all = bounded(all + bounded(wait))
	}
	if inner, ok := r.action.(retried); ok {
		all = bounded(all + inner.inner().longest()*time.Duration(len(r.waits)+1))
	}
	return all
}
