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
// of [bootstrap.Reverter] and [bootstrap.CheckReverter] if it is one, as far as
// the action's own answers show it. It is [Conformance] without State, Others and
// Break.
func Conform(t testing.TB, newAction func() bootstrap.Action) {
	t.Helper()
	Conformance{Action: newAction}.Test(t)
}

// Conformance tests that an action keeps the contract of [bootstrap.Action], and
// of [bootstrap.Reverter] and [bootstrap.CheckReverter] if it is one.
//
// The rules:
//
//   - Check changes nothing and answers the same when asked again. A change is
//     one line, not empty.
//   - With a context that is done, Apply and Revert return its error and change
//     nothing; Check and CheckRevert return an error or the usual answer.
//   - After Apply, Check names no changes. Apply may be repeated, and then
//     changes nothing.
//   - Revert, where nothing was applied, is no error and changes nothing.
//   - After Revert, Check answers what it answered first, and what was there
//     before is there again. Revert may be repeated, and the action applied and
//     reverted again.
//   - CheckRevert names nothing before Apply, something after it, and nothing
//     after Revert; it changes nothing and answers the same when asked again.
//   - What somebody else has applied, Revert leaves.
//   - An Apply that fails names the object, and what it did can be reverted.
//
// The rules for Revert and CheckRevert are not tested if they return an error
// that matches [errors.ErrUnsupported]; the node is then left applied. Else it is
// left as it was found, or as Others leave it.
type Conformance struct {
	// Action returns the action. It is called anew for every call of a method,
	// always over the same node, so what is not on that node is forgotten between
	// them, as between two processes. At the start, the node must be in a state in
	// which the action has something to change.
	Action func() bootstrap.Action

	// State describes all of the node that the action could touch, object by
	// object, but for what it records: the contents of a directory, the values of a
	// kernel. Nil: what changes is known by Check and CheckRevert only.
	State func() map[string]string

	// Others returns the same action of somebody else, who records what they do
	// elsewhere, or not at all. Nil: nobody else is tested for.
	Others func() bootstrap.Action

	// Break makes the node such that Apply fails, until mend is called. The object
	// is what the error has to name, such as a path. Nil: no failure is tested.
	Break func() (object string, mend func())
}

// Test tests the rules. It runs on the calling goroutine and starts no subtests,
// so it can be used in a test that is locked to a thread in other namespaces. It
// ends with the first rule that is broken, by t.Fatalf.
func (c Conformance) Test(t testing.TB) {
	t.Helper()
	if err := c.test(t.Context()); err != nil {
		t.Fatalf("the action breaks the contract: %v", err)
	}
}

// subject is the action under test, with what is known of it.
type subject struct {
	Conformance
	first   []string // what Check named before anything was applied
	reverts bool

	found, applied map[string]string // the node's state before and after Apply
}

// test tests one rule after the other, each on what the last one left.
func (c Conformance) test(ctx context.Context) (err error) {
	s := &subject{Conformance: c}
	s.found = s.state()
	if s.first, err = s.check(ctx); err != nil {
		return fmt.Errorf("the first Check: %w", err)
	}
	if len(s.first) == 0 {
		return errors.New("the first Check names no changes: nothing can be shown on this node")
	}
	rules := []rule{s.pure, s.revertNothing, s.refuseApply, s.fail, s.apply, s.applyAgain}
	undo := []rule{s.refuseRevert, s.revert, s.revertAgain, s.apply, s.revert, s.leaveOthers}
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
	changes, err := s.Action().Check(ctx)
	if err != nil {
		return nil, err
	}
	return changes, wellFormed(changes)
}

// checkRevert asks CheckRevert; ok is false for an action that has none.
func (s *subject) checkRevert(ctx context.Context) (changes []string, ok bool, err error) {
	r, ok := s.Action().(bootstrap.CheckReverter)
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

// is tests that the node is as it was found or, if it is applied, as Apply left
// it, and that Check and CheckRevert say so and leave it so.
func (s *subject) is(ctx context.Context, applied bool, when string) error {
	state, want := s.found, s.first
	if applied {
		state, want = s.applied, nil
	}
	if changed := differ(state, s.state()); changed != "" {
		return fmt.Errorf("the node is another %s: %s", when, changed)
	}
	if err := s.answers(ctx, when, want, applied); err != nil {
		return err
	}
	if changed := differ(state, s.state()); changed != "" {
		return fmt.Errorf("Check or CheckRevert %s changes the node: %s", when, changed)
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
