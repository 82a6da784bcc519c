// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

// Action is what [In] wraps. Every bootstrap.Action satisfies it.
type Action interface {
	// Check says what Apply would change; none if nothing.
	Check(ctx context.Context) (changes []string, err error)
	// Apply brings the node to the state.
	Apply(ctx context.Context) error
}

// Wrapped is an action that runs in the namespaces of another process. It
// satisfies bootstrap.Action, bootstrap.Adviser and bootstrap.CheckReverter.
// [In] makes it.
type Wrapped struct {
	procDir string
	ns      Namespace
	action  Action
}

// In returns an action whose every method calls the one of a through [Do], in
// the namespaces ns of the process that procDir shows. So each path that a
// holds is one of that process's side; a file of the caller's side is opened
// before and handed to a.
func In(procDir string, ns Namespace, a Action) Wrapped {
	return Wrapped{procDir: procDir, ns: ns, action: a}
}

// Check says, from inside, what Apply would change.
func (w Wrapped) Check(ctx context.Context) (changes []string, err error) {
	err = Do(ctx, w.procDir, w.ns, func(ctx context.Context) (err error) {
		changes, err = w.action.Check(ctx)
		return err
	})
	return changes, err
}

// Apply applies the action inside.
func (w Wrapped) Apply(ctx context.Context) error {
	return Do(ctx, w.procDir, w.ns, w.action.Apply)
}

// Advise says, from inside, what the action has to say. One that has nothing to say
// is not entered for.
func (w Wrapped) Advise(ctx context.Context) (advice []string, err error) {
	a, ok := w.action.(interface {
		Advise(context.Context) ([]string, error)
	})
	if !ok {
		return nil, nil
	}
	err = Do(ctx, w.procDir, w.ns, func(ctx context.Context) (err error) {
		advice, err = a.Advise(ctx)
		return err
	})
	return advice, err
}

// Revert reverts the action inside. Over an action that cannot be reverted it
// enters nothing and returns an error matching [errors.ErrUnsupported].
func (w Wrapped) Revert(ctx context.Context) error {
	a, ok := w.action.(interface{ Revert(context.Context) error })
	if !ok {
		return unsupported.Error(fmt.Sprintf("a %T cannot be reverted", w.action))
	}
	return Do(ctx, w.procDir, w.ns, a.Revert)
}

// CheckRevert says, from inside, what Revert would undo. Over an action that
// cannot say it, it enters nothing and returns an error matching
// [errors.ErrUnsupported].
func (w Wrapped) CheckRevert(ctx context.Context) (changes []string, err error) {
	a, ok := w.action.(interface {
		CheckRevert(context.Context) ([]string, error)
	})
	if !ok {
		if _, reverter := w.action.(interface{ Revert(context.Context) error }); reverter {
			return nil, cannotSay{unsupported.Error(fmt.Sprintf("a %T cannot say beforehand what it would revert", w.action))}
		}
		return nil, unsupported.Error(fmt.Sprintf("a %T cannot be reverted", w.action))
	}
	err = Do(ctx, w.procDir, w.ns, func(ctx context.Context) (err error) {
		changes, err = a.CheckRevert(ctx)
		return err
	})
	return changes, err
}

// cannotSay tells a plan that there may be something to revert all the same.
type cannotSay struct{ error }

// CannotSay marks the error, for package bootstrap.
func (cannotSay) CannotSay() {}

func (e cannotSay) Unwrap() error { return e.error }
