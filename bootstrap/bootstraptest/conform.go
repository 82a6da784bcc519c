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
	"testing"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Conform tests that an action keeps the contract of [bootstrap.Action] and, if it is one,
// of [bootstrap.Undoer]:
//
//   - Check changes nothing and answers the same when asked again. A change is one
//     printable line, not empty.
//   - With a context that is done, Apply and Undo return its error and change nothing;
//     Check returns an error or the usual answer.
//   - After Apply, Check names no changes. Apply may be repeated, and then changes nothing.
//   - CheckUndo, which changes nothing, names something exactly while it is applied.
//   - Undo, if nothing was applied, returns no error and changes nothing.
//   - After Undo, Check answers what it answered first, and what existed before exists
//     again. Undo may be repeated, and the action applied and undone again.
//
// If the action is an Undoer, the node is left as it was found, else applied.
//
// NewAction returns the action. It is called anew for every method call, always for the
// same node, so that only state on the node survives between them, as between two
// processes. At the start, the node must be in a state in which the action has something to
// change. State describes everything on the node that the action could touch, object by
// object: the contents of a directory, the status of a server. If it is nil, changes are seen
// through Check only.
//
// It runs on the calling goroutine and starts no subtests, so it can be used in a test that is
// locked to a thread in other namespaces. It ends at the first broken rule, with t.Fatalf.
func Conform(t testing.TB, newAction func() bootstrap.Action, state func() map[string]string) {
	t.Helper()
	if state == nil {
		state = func() map[string]string { return nil }
	}
	s := &subject{action: newAction, state: state}
	if err := s.test(t.Context()); err != nil {
		t.Fatalf("the action breaks the contract: %v", err)
	}
}

// subject is the action under test, with what is known of it.
type subject struct {
	action         func() bootstrap.Action
	state          func() map[string]string
	first          []string          // changes that Check named before anything was applied
	found, applied map[string]string // the node's state before and after Apply
}

// test tests one rule after the other, each on the node as the last one left it.
func (s *subject) test(ctx context.Context) (err error) {
	s.found = s.state()
	if s.first, err = s.check(ctx); err != nil {
		return fmt.Errorf("the first Check: %w", err)
	}
	if len(s.first) == 0 {
		return errors.New("the first Check names no changes: this node cannot test the action")
	}
	if changes, err := s.check(done(ctx)); err == nil && !slices.Equal(changes, s.first) {
		return fmt.Errorf("Check with a context that is done names %q, but must name %q or fail", changes, s.first)
	}
	apply, undo := call{"Apply", s.apply, true}, call{"Undo", s.undo, false}
	rules := []rule{s.is(false, "before Apply"), s.refuse(apply), s.succeed(apply), s.succeed(apply)}
	if s.undoer() != nil {
		rules = slices.Concat([]rule{s.succeed(undo)}, rules, []rule{s.refuse(undo), s.succeed(undo), s.succeed(undo), s.succeed(apply), s.succeed(undo)})
	}
	for _, rule := range rules {
		if err := rule(ctx); err != nil {
			return err
		}
	}
	return nil
}

type rule func(context.Context) error

// call is one of Apply or Undo.
type call struct {
	name      string
	do        func(context.Context) error
	isApplied bool // how the node must be afterwards
}

// apply is how it leaves the node the first time that it must be later.
func (s *subject) apply(ctx context.Context) error {
	err := s.action().Apply(ctx)
	if err == nil && s.applied == nil {
		s.applied = s.state()
	}
	return err
}

func (s *subject) undo(ctx context.Context) error {
	return s.undoer().Undo(ctx)
}

// undoer is nil if the action cannot be undone.
func (s *subject) undoer() bootstrap.Undoer {
	undoer, _ := s.action().(bootstrap.Undoer)
	return undoer
}

// checkUndo checks that there is something to undo exactly if it is applied.
func (s *subject) checkUndo(ctx context.Context, isApplied bool) error {
	undoer := s.undoer()
	if undoer == nil {
		return nil
	}
	changes, err := undoer.CheckUndo(ctx)
	if err == nil && isApplied != (len(changes) > 0) {
		err = fmt.Errorf("it names %q", changes)
	}
	return err
}

// check calls Check, and checks the form of the answer.
func (s *subject) check(ctx context.Context) ([]string, error) {
	changes, err := s.action().Check(ctx)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		if err := isLine(change); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func isLine(change string) error {
	if strings.TrimSpace(change) == "" || strings.ContainsAny(change, "\r\n") || printable.Line(change) != change {
		return fmt.Errorf("a change must be one line of printable text, and is %q", change)
	}
	return nil
}

// succeed calls it.
func (s *subject) succeed(c call) rule {
	return func(ctx context.Context) error {
		if err := c.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return s.is(c.isApplied, "after "+c.name)(ctx)
	}
}

// refuse calls it with a context that is done: it must return the context's error, and the
// node must stay as it is.
func (s *subject) refuse(c call) rule {
	return func(ctx context.Context) error {
		switch err := c.do(done(ctx)); {
		case err == nil:
			return fmt.Errorf("%s with a context that is done returns no error", c.name)
		case !errors.Is(err, context.Canceled):
			return fmt.Errorf("%s with a context that is done returns an error other than the context's: %w", c.name, err)
		}
		return s.is(!c.isApplied, "after "+c.name+" with a context that is done")(ctx)
	}
}

// is tests that the node is as it was found or, if it is applied, as Apply left it, and
// that Check, asked twice, reports and keeps that.
func (s *subject) is(isApplied bool, when string) rule {
	state, want := s.found, s.first
	return func(ctx context.Context) error {
		if isApplied {
			state, want = s.applied, nil
		}
		for range 2 {
			if changed := differ(state, s.state()); changed != "" {
				return fmt.Errorf("the node differs %s: %s", when, changed)
			}
			changes, err := s.check(ctx)
			if err != nil {
				return fmt.Errorf("Check %s: %w", when, err)
			}
			if !slices.Equal(changes, want) {
				return fmt.Errorf("Check %s names %q, and must name %q", when, changes, want)
			}
			if err := s.checkUndo(ctx, isApplied); err != nil {
				return fmt.Errorf("CheckUndo %s: %w", when, err)
			}
		}
		return nil
	}
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

func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
