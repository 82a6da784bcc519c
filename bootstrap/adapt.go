// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Func returns an Action of two functions. It has no Revert. Where one of them
// is nil, the method returns an error that matches [errors.ErrUnsupported].
func Func(check func(context.Context) ([]string, error), apply func(context.Context) error) Action {
	return funcs{check, apply}
}

type funcs struct {
	check func(context.Context) ([]string, error)
	apply func(context.Context) error
}

func (f funcs) Check(ctx context.Context) ([]string, error) {
	if f.check == nil {
		return nil, fmt.Errorf("the action has no function to check with: %w", errors.ErrUnsupported)
	}
	return f.check(ctx)
}

func (f funcs) Apply(ctx context.Context) error {
	if f.apply == nil {
		return fmt.Errorf("the action has no function to apply with: %w", errors.ErrUnsupported)
	}
	return f.apply(ctx)
}

// Retry returns an Action that calls a's methods again while they return an
// error that is retryable: after the first wait, after the second, and so on,
// so that len(waits)+1 calls are made at most. The last error is returned. A
// nil retryable takes every error for retryable; one that matches
// [errors.ErrUnsupported] never is.
//
// Waits end when the context does, and no call is made after that.
//
// The result is an [Adviser] and a [CheckReverter] whatever a is; over an action without the
// method in question, Revert and CheckRevert return an error that matches
// errors.ErrUnsupported.
func Retry(a Action, retryable func(error) bool, waits ...time.Duration) Action {
	return retry{a, retryable, waits}
}

type retry struct {
	action    Action
	retryable func(error) bool
	waits     []time.Duration
}

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

func (r retry) Revert(ctx context.Context) error {
	reverter, ok := r.action.(Reverter)
	if !ok {
		return errNoRevert
	}
	return r.do(ctx, func() error { return reverter.Revert(ctx) })
}

func (r retry) CheckRevert(ctx context.Context) (changes []string, err error) {
	if _, ok := r.action.(Reverter); !ok {
		return nil, errNoRevert
	}
	reverter, ok := r.action.(CheckReverter)
	if !ok {
		return nil, errNoCheckRevert
	}
	err = r.do(ctx, func() error {
		changes, err = reverter.CheckRevert(ctx)
		return err
	})
	return changes, err
}

// do calls f until it succeeds, its error is final, or the waits are used up.
func (r retry) do(ctx context.Context, f func() error) error {
	err := f()
	for i, wait := range r.waits {
		if err == nil || !r.again(err) {
			return err
		}
		Waiting(ctx, Wait{For: "another try", Tries: i + 1, Err: err, Pause: wait})
		if stop := sleep(ctx, wait); stop != nil {
			return fmt.Errorf("%w (gave up waiting for another try: %w)", err, stop)
		}
		err = f()
	}
	if err != nil && len(r.waits) > 0 && r.again(err) {
		return fmt.Errorf("%w (after %d tries)", err, len(r.waits)+1)
	}
	return err
}

func (r retry) again(err error) bool {
	if nothingToRevert(err) {
		return false
	}
	return r.retryable == nil || r.retryable(err)
}

// sleep waits for d, or returns why ctx ended first.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
