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

// Func returns an Action made of two functions. It has no Revert. If a function is
// nil, its method returns an error that matches [errors.ErrUnsupported].
func Func(check func(context.Context) ([]string, error), apply func(context.Context) error) FuncAction {
	return FuncAction{check: check, apply: apply}
}

// FuncAction is an Action made of functions by [Func]. What it records, and where its
// objects are, is said by [FuncAction.Recording] and [FuncAction.In].
type FuncAction struct {
	check      func(context.Context) ([]string, error)
	apply      func(context.Context) error
	namespaces []string
}

// Recording returns f as a [Recorder] of these kinds of entries. Of none, it is one
// that makes nothing that could be undone.
func (f FuncAction) Recording(kinds ...string) RecordingFunc { return RecordingFunc{f, kinds} }

// In returns f with its functions called in these namespaces of the host.
func (f FuncAction) In(namespaces ...string) FuncAction {
	f.namespaces = namespaces
	return f
}

// Namespaces returns those that [FuncAction.In] was given.
func (f FuncAction) Namespaces() []string { return f.namespaces }

// RecordingFunc is a FuncAction that says what it records.
type RecordingFunc struct {
	FuncAction
	kinds []string
}

// Kinds returns those that [FuncAction.Recording] was given.
func (f RecordingFunc) Kinds() []string { return f.kinds }

// Check calls the function.
func (f FuncAction) Check(ctx context.Context) ([]string, error) {
	if f.check == nil {
		return nil, fmt.Errorf("the action has no function to check with: %w", errors.ErrUnsupported)
	}
	return f.check(ctx)
}

// Apply calls the function.
func (f FuncAction) Apply(ctx context.Context) error {
	if f.apply == nil {
		return fmt.Errorf("the action has no function to apply with: %w", errors.ErrUnsupported)
	}
	return f.apply(ctx)
}

// Retry returns an Action that calls a method of a again for as long as it returns
// a retryable error: first after waits[0], then after waits[1], and so on, for at
// most len(waits)+1 calls. The last error is returned. If retryable is nil, every
// error is retryable, except one that matches [errors.ErrUnsupported], which never
// is.
//
// A wait ends when the context does, and no further call is made.
//
// It is for what passes by itself in a moment. In a plan's step, the waits may take
// [MaxWaits] together, also those of a Retry around another: the node is locked
// meanwhile. To wait for others, use a gate.
//
// The result is a [Wrapper]. It is always an [Adviser] and a [CheckReverter]. If a lacks
// the method, Advise returns nothing, and Revert and CheckRevert return an error that
// matches errors.ErrUnsupported.
func Retry(a Action, retryable func(error) bool, waits ...time.Duration) Action {
	if a == nil {
		a = noAction{}
	}
	return retry{a, retryable, waits}
}

// noAction stands in for an action that was not given. All its methods fail, Revert
// too: a missing action must not be mistaken for one with nothing to revert.
type noAction struct{}

var errNoAction = errors.New("no action given")

func (noAction) Check(context.Context) ([]string, error)       { return nil, errNoAction }
func (noAction) Apply(context.Context) error                   { return errNoAction }
func (noAction) Revert(context.Context) error                  { return errNoAction }
func (noAction) CheckRevert(context.Context) ([]string, error) { return nil, errNoAction }

type retry struct {
	action    Action
	retryable func(error) bool
	waits     []time.Duration
}

func (r retry) Unwrap() Action { return r.action }

// Waits is how long the waits take together.
func (r retry) Waits() time.Duration { return waits(r) }

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

func (r retry) again(err error) bool {
	if nothingToRevert(err) {
		return false
	}
	return r.retryable == nil || r.retryable(err)
}
