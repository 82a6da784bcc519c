// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"slices"
	"sync"

	"github.com/slipway-dev/slipway/bootstrap"
)

var (
	_ bootstrap.Action = (*Script)(nil)
	_ bootstrap.Gate   = (*Script)(nil)
	_ bootstrap.Undoer = (*Script)(nil)
)

// Script is an action, or a gate, that a test controls, and that records its calls. The
// zero value is an action with nothing to change. Set the fields before the first call;
// methods may be called by several goroutines.
//
// Check names Changes until Apply or Wait succeeds, and again after Undo. Every
// method returns the context's error if the context is done, and changes
// nothing then. A Script passes [Conform].
//
// To have an action without Undo, wrap it: struct{ bootstrap.Action }{s}. One that does not
// converge is a [bootstrap.Func] that is never done; one with advice embeds a Script.
type Script struct {
	// Changes are the changes that Check names while the script is not applied.
	Changes []string

	// Errs are, by the call's name as in Calls, the errors of its first, second, ... call,
	// which then does nothing else. Nil, and past the end, means success.
	Errs map[string][]error

	// Hook is called in each call, before anything else and without a lock
	// held, with the call's name as in Calls. An error of its own is returned
	// from the call. It may block, to test timeouts.
	Hook func(ctx context.Context, call string) error

	mu      sync.Mutex
	calls   []string
	applied bool
}

// Calls returns the calls made so far, in order: "check", "apply", "wait", "check-undo" and
// "undo".
func (s *Script) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Check implements [bootstrap.Action].
func (s *Script) Check(ctx context.Context) (changes []string, err error) {
	err = s.call(ctx, "check", func() {
		if !s.applied {
			changes = slices.Clone(s.Changes)
		}
	})
	return changes, err
}

// Apply implements [bootstrap.Action].
func (s *Script) Apply(ctx context.Context) error {
	return s.call(ctx, "apply", func() { s.applied = true })
}

// Wait implements [bootstrap.Gate].
func (s *Script) Wait(ctx context.Context) error {
	return s.call(ctx, "wait", func() { s.applied = true })
}

// CheckUndo implements [bootstrap.Undoer]: it names Changes, each as "undo: ...", once they
// are applied.
func (s *Script) CheckUndo(ctx context.Context) (changes []string, err error) {
	err = s.call(ctx, "check-undo", func() {
		for i := 0; i < len(s.Changes) && s.applied; i++ {
			changes = append(changes, "undo: "+s.Changes[i])
		}
	})
	return changes, err
}

// Undo implements [bootstrap.Undoer].
func (s *Script) Undo(ctx context.Context) error {
	return s.call(ctx, "undo", func() { s.applied = false })
}

// call records a call and carries it out, unless an error is due.
func (s *Script) call(ctx context.Context, name string, do func()) error {
	nth := s.record(name)
	if s.Hook != nil {
		if err := s.Hook(ctx, name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if errs := s.Errs[name]; nth < len(errs) && errs[nth] != nil {
		return errs[nth]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	return nil
}

// record notes a call and returns the number of earlier calls of its name.
func (s *Script) record(name string) (before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls {
		if call == name {
			before++
		}
	}
	s.calls = append(s.calls, name)
	return before
}
