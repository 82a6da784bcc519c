// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

// Action is what [In] wraps. Every bootstrap.Action satisfies it.
type Action interface {
	// Check says what Apply would change.
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

// In returns an action that calls each method of a through [Do], in the namespaces
// ns of the process whose directory in a proc file system is procDir. Every path in
// a is therefore resolved on that process's side. To give a a file of the caller's
// side, open the file first.
func In(procDir string, ns Namespace, a Action) Wrapped {
	return Wrapped{procDir: procDir, ns: ns, action: a}
}

// errNoAction does not match [errors.ErrUnsupported]: a missing action must not be
// mistaken for one with nothing to revert.
var errNoAction = errors.New("no action given to run in other namespaces")

// Check calls the action's Check inside, and says what Apply would change.
func (w Wrapped) Check(ctx context.Context) (changes []string, err error) {
	if w.action == nil {
		return nil, errNoAction
	}
	err = Do(ctx, w.procDir, w.ns, func(ctx context.Context) (err error) {
		changes, err = w.action.Check(ctx)
		return err
	})
	return changes, err
}

// Apply applies the action inside.
func (w Wrapped) Apply(ctx context.Context) error {
	if w.action == nil {
		return errNoAction
	}
	return Do(ctx, w.procDir, w.ns, w.action.Apply)
}

// Advise returns the advice that the action gives inside. If the action gives none,
// because it is not an Adviser, nothing is entered.
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

// Revert reverts the action inside. If the action cannot be reverted, Revert enters
// nothing and returns an error matching [errors.ErrUnsupported].
func (w Wrapped) Revert(ctx context.Context) error {
	if w.action == nil {
		return errNoAction
	}
	a, ok := w.action.(interface{ Revert(context.Context) error })
	if !ok {
		return unsupported.Error(fmt.Sprintf("a %T cannot be reverted", w.action))
	}
	return Do(ctx, w.procDir, w.ns, a.Revert)
}

// CheckRevert calls the action's CheckRevert inside, and says what Revert would
// undo. If the action has no such method, CheckRevert enters nothing and returns an
// error matching [errors.ErrUnsupported].
func (w Wrapped) CheckRevert(ctx context.Context) (changes []string, err error) {
	if w.action == nil {
		return nil, errNoAction
	}
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
