// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap"
)

// Conform tests that an action keeps the contract of [bootstrap.Action], and
// of [bootstrap.Reverter] and [bootstrap.CheckReverter] if it is one.
//
// newAction returns the action; it is called anew for every call that Conform makes
// of a method, always over the same node, so what is not on that node is
// forgotten between them, as between two processes. When Conform starts, the
// node must be in a state in which the action has something to change.
//
// The rules:
//
//   - Check changes nothing and answers the same when asked again. A change is
//     one line, not empty.
//   - With a context that is done, Apply and Revert return an error and change
//     nothing; Check and CheckRevert return an error or the usual answer.
//   - After Apply, Check names no changes. Apply may be repeated.
//   - Revert, where nothing was applied, is no error and changes nothing.
//   - After Revert, Check answers what it answered first. Revert may be
//     repeated, and the action applied and reverted again.
//   - CheckRevert names nothing before Apply, something after it, and nothing
//     after Revert; it changes nothing and answers the same when asked again.
//
// The rules for Revert and CheckRevert are not tested if they return an error
// that matches [errors.ErrUnsupported]; the node is then left applied, else as
// it was found.
//
// Conform runs on the calling goroutine and starts no subtests, so it can be
// used in a test that is locked to a thread in other namespaces. It ends with
// the first rule that is broken, by t.Fatalf.
func Conform(t testing.TB, newAction func() bootstrap.Action) {
	t.Helper()
	if err := conform(t.Context(), newAction); err != nil {
		t.Fatalf("the action breaks the contract: %v", err)
	}
}

// subject is the action under test, with what is known of it.
type subject struct {
	action  func() bootstrap.Action
	first   []string // what Check named before anything was applied
	reverts bool
}

// conform tests one rule after the other, each on what the last one left.
func conform(ctx context.Context, newAction func() bootstrap.Action) (err error) {
	s := &subject{action: newAction}
	if s.first, err = s.check(ctx); err != nil {
		return fmt.Errorf("the first Check: %w", err)
	}
	if len(s.first) == 0 {
		return errors.New("the first Check names no changes: nothing can be shown on this node")
	}
	rules := []rule{s.pure, s.revertNothing, s.refuseApply, s.apply, s.applyAgain}
	undo := []rule{s.refuseRevert, s.revert, s.revertAgain, s.apply, s.revert}
	if err := inOrder(ctx, rules); err != nil || !s.reverts {
		return err
	}
	return inOrder(ctx, undo)
}

type rule func(context.Context) error

func inOrder(ctx context.Context, rules []rule) error {
	for _, rule := range rules {
		if err := rule(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check asks Check, and looks at the form of the answer.
func (s *subject) check(ctx context.Context) ([]string, error) {
	changes, err := s.action().Check(ctx)
	if err != nil {
		return nil, err
	}
	return changes, wellFormed(changes)
}

// checkRevert asks CheckRevert; ok is false for an action that has none.
func (s *subject) checkRevert(ctx context.Context) (changes []string, ok bool, err error) {
	r, ok := s.action().(bootstrap.CheckReverter)
	if !ok || !s.reverts {
		return nil, false, nil
	}
	changes, err = r.CheckRevert(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	return changes, true, wellFormed(changes)
}

func wellFormed(changes []string) error {
	for _, change := range changes {
		if strings.TrimSpace(change) == "" || strings.ContainsAny(change, "\r\n") {
			return fmt.Errorf("a change must be one line with a text, and is %q", change)
		}
	}
	return nil
}

// answers tests that Check and CheckRevert answer as they must, twice each.
func (s *subject) answers(ctx context.Context, when string, want []string, revertible bool) error {
	for _, ask := range []string{"", ", asked again"} {
		changes, err := s.check(ctx)
		if err != nil {
			return fmt.Errorf("Check %s%s: %w", when, ask, err)
		}
		if !slices.Equal(changes, want) {
			return fmt.Errorf("Check %s%s names %q, and must name %q", when, ask, changes, want)
		}
	}
	before, ok, err := s.checkRevert(ctx)
	switch {
	case !ok:
		return nil
	case err != nil:
		return fmt.Errorf("CheckRevert %s: %w", when, err)
	}
	switch {
	case revertible && len(before) == 0:
		return fmt.Errorf("CheckRevert %s names nothing, and must name what Revert would undo", when)
	case !revertible && len(before) > 0:
		return fmt.Errorf("CheckRevert %s names %q, and must name nothing", when, before)
	}
	again, _, err := s.checkRevert(ctx)
	if err != nil {
		return fmt.Errorf("CheckRevert %s, asked again: %w", when, err)
	}
	if !slices.Equal(before, again) {
		return fmt.Errorf("CheckRevert %s names %q, and asked again %q", when, before, again)
	}
	return nil
}

func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func (s *subject) pure(ctx context.Context) error {
	if changes, err := s.check(done(ctx)); err == nil && !slices.Equal(changes, s.first) {
		return fmt.Errorf("Check with a context that is done names %q, and must name %q or fail", changes, s.first)
	}
	return s.answers(ctx, "before Apply", s.first, false)
}

// revertNothing also tells an action that can be reverted from one that cannot.
func (s *subject) revertNothing(ctx context.Context) error {
	r, ok := s.action().(bootstrap.Reverter)
	if !ok {
		return nil
	}
	err := r.Revert(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("Revert where nothing was applied: %w", err)
	}
	s.reverts = err == nil
	return s.answers(ctx, "after Revert where nothing was applied", s.first, false)
}

func (s *subject) refuseApply(ctx context.Context) error {
	if err := s.action().Apply(done(ctx)); err == nil {
		return errors.New("Apply with a context that is done returns no error")
	}
	return s.answers(ctx, "after Apply with a context that is done", s.first, false)
}

func (s *subject) apply(ctx context.Context) error {
	if err := s.action().Apply(ctx); err != nil {
		return fmt.Errorf("Apply: %w", err)
	}
	return s.answers(ctx, "after Apply", nil, true)
}

func (s *subject) applyAgain(ctx context.Context) error {
	if err := s.action().Apply(ctx); err != nil {
		return fmt.Errorf("Apply where it is applied already: %w", err)
	}
	return s.answers(ctx, "after a second Apply", nil, true)
}

func (s *subject) refuseRevert(ctx context.Context) error {
	if err := s.action().(bootstrap.Reverter).Revert(done(ctx)); err == nil {
		return errors.New("Revert with a context that is done returns no error")
	}
	return s.answers(ctx, "after Revert with a context that is done", nil, true)
}

func (s *subject) revert(ctx context.Context) error {
	if err := s.action().(bootstrap.Reverter).Revert(ctx); err != nil {
		return fmt.Errorf("Revert: %w", err)
	}
	return s.answers(ctx, "after Revert", s.first, false)
}

func (s *subject) revertAgain(ctx context.Context) error {
	if err := s.action().(bootstrap.Reverter).Revert(ctx); err != nil {
		return fmt.Errorf("Revert where it is reverted already: %w", err)
	}
	return s.answers(ctx, "after a second Revert", s.first, false)
}
