// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

func (s *subject) state() map[string]string {
	if s.State == nil {
		return nil
	}
	return s.State()
}

// differ names the first object that is not in the same state; "" if there is none.
func differ(before, now map[string]string) string {
	objects := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(now))
	slices.Sort(objects)
	for _, o := range objects {
		was, had := before[o]
		is, has := now[o]
		switch {
		case had && !has:
			return fmt.Sprintf("%s is gone (was %q)", o, was)
		case !had:
			return fmt.Sprintf("%s is new (%q)", o, is)
		case was != is:
			return fmt.Sprintf("%s is %q (was %q)", o, is, was)
		}
	}
	return ""
}

func (s *subject) pure(ctx context.Context) error {
	if changes, err := s.check(done(ctx)); err == nil && !slices.Equal(changes, s.first) {
		return fmt.Errorf("Check with a context that is done names %q, but must name %q or fail", changes, s.first)
	}
	if changed := differ(s.found, s.state()); changed != "" {
		return fmt.Errorf("the first Check changes the node: %s", changed)
	}
	return s.is(ctx, false, "before Apply")
}

// revertNothing also finds out whether the action can be reverted.
func (s *subject) revertNothing(ctx context.Context) error {
	err := s.callRevert(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("Revert with nothing applied: %w", err)
	}
	s.reverts = err == nil
	return s.is(ctx, false, "after Revert with nothing applied")
}

// call is a rule for one call of Apply or Revert.
type call struct {
	name    string
	do      func(context.Context) error
	applied bool // how the node must be afterwards
}

// succeed calls it. nth, such as "a second ", says which time it is.
func (s *subject) succeed(c call, nth string) rule {
	return func(ctx context.Context) error {
		if err := c.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", nth+c.name, err)
		}
		return s.is(ctx, c.applied, "after "+nth+c.name)
	}
}

// refuse calls it with a context that is done: it must return the context's error, and the
// node must stay as it is.
func (s *subject) refuse(c call) rule {
	return func(ctx context.Context) error {
		err := c.do(done(ctx))
		switch {
		case err == nil:
			return fmt.Errorf("%s with a context that is done returns no error", c.name)
		case !errors.Is(err, context.Canceled):
			return fmt.Errorf("%s with a context that is done returns an error other than the context's: %w", c.name, err)
		}
		return s.is(ctx, !c.applied, "after "+c.name+" with a context that is done")
	}
}

// fail tests that a failing Apply can be reverted.
func (s *subject) fail(ctx context.Context) error {
	if s.Break == nil {
		return nil
	}
	object, mend := s.Break()
	err := s.callApply(ctx)
	mend()
	switch {
	case err == nil:
		return errors.New("Apply on the broken node returns no error, so that failures are not tested")
	case !strings.Contains(err.Error(), object):
		return fmt.Errorf("the error of an Apply that fails does not name %q: %w", object, err)
	case !s.reverts:
		return nil
	}
	if err := s.callRevert(ctx); err != nil {
		return fmt.Errorf("Revert after an Apply that failed: %w", err)
	}
	return s.is(ctx, false, "after an Apply that failed, and Revert")
}

// resume tests that the next Apply completes, and records, what a failing one began.
func (s *subject) resume(ctx context.Context) error {
	if s.Break == nil || !s.reverts {
		return nil
	}
	_, mend := s.Break()
	err := s.callApply(ctx)
	mend()
	if err == nil {
		return errors.New("Apply on the broken node, the second time, returns no error")
	}
	if err := inOrder(ctx, s.succeed(s.apply(), ""), s.succeed(s.revert(), "")); err != nil {
		return fmt.Errorf("after an Apply that failed: %w", err)
	}
	return nil
}

// apply is a first Apply: how it leaves the node is how it must be later.
func (s *subject) apply() call {
	return call{"Apply", func(ctx context.Context) error {
		err := s.with(ctx, s.applyRecording)
		s.applied = s.state()
		return err
	}, true}
}

func (s *subject) applyAgain() call { return call{"Apply", s.callApply, true} }

func (s *subject) revert() call { return call{"Revert", s.callRevert, false} }

// applyRecording applies the action and, as a plan does, returns an error if that changes
// something and records nothing.
func (s *subject) applyRecording(ctx context.Context, a bootstrap.Action) error {
	changes, err := a.Check(ctx)
	if err != nil {
		return err
	}
	if j := journal.From(ctx); j != nil {
		ctx = journal.With(ctx, j.Step("conformance")) // what the check has asked does not count
	}
	if err := a.Apply(ctx); err != nil {
		return err
	}
	r, ok := a.(bootstrap.Recorder)
	if !ok || len(r.Kinds()) == 0 || len(s.Handlers) == 0 || len(changes) == 0 || (&journal.Node{}).Noted(ctx) {
		return nil
	}
	return fmt.Errorf("%w: call Begin before each change, also one to an object that is recorded already", bootstrap.ErrUnrecorded)
}

// leaveOthers tests that another agent's changes are not undone.
func (s *subject) leaveOthers(ctx context.Context) error {
	if s.Others == nil {
		return nil
	}
	if err := s.Others().Apply(ctx); err != nil {
		return fmt.Errorf("Apply of Others: %w", err)
	}
	theirs := s.state()
	if err := s.callApply(ctx); err != nil {
		return fmt.Errorf("Apply where Others have applied: %w", err)
	}
	if err := s.callRevert(ctx); err != nil {
		return fmt.Errorf("Revert where Others have applied: %w", err)
	}
	if changed := differ(theirs, s.state()); changed != "" {
		return fmt.Errorf("Apply and Revert change what Others have applied: %s", changed)
	}
	return s.answers(ctx, "after Revert where Others have applied", nil, false)
}
