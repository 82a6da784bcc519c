// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Conform tests that an action keeps the contract of [bootstrap.Action] and of those of
// [bootstrap.Recorder], [bootstrap.Reverter] and [bootstrap.CheckReverter] that it or its
// handlers implement, as far as the action's own answers show it. It is [Conformance]
// without State, Others and Break.
func Conform(t testing.TB, newAction func() bootstrap.Action, handlers ...journal.Handler) {
	t.Helper()
	Conformance{Action: newAction, Handlers: handlers}.Test(t)
}

// Conformance tests that an action keeps the contract of [bootstrap.Action] and, if it
// implements them, of [bootstrap.Recorder] or of [bootstrap.Reverter] and
// [bootstrap.CheckReverter].
//
// The rules:
//
//   - Check changes nothing and answers the same when asked again. A change is
//     one line, not empty.
//   - With a context that is done, Apply and Revert return its error and change
//     nothing; Check and CheckRevert return an error or the usual answer.
//   - After Apply, Check names no changes. Apply may be repeated, and then
//     changes nothing.
//   - Revert, if nothing was applied, returns no error and changes nothing.
//   - After Revert, Check answers what it answered first, and what existed
//     before exists again. Revert may be repeated, and the action applied and
//     reverted again.
//   - CheckRevert names nothing before Apply, something after it, and nothing
//     after Revert; it changes nothing and answers the same when asked again.
//   - Revert leaves what others have applied.
//   - A failed Apply names the object in its error, and its work can be reverted, or
//     completed by the next Apply, which records the change that was missing.
//   - The handlers undo the kinds that a Recorder declares: Revert and CheckRevert
//     are then those of the journal, in which each Apply must have recorded all that it
//     changed.
//
// The rules for Revert and CheckRevert are not tested if they return an error
// that matches [errors.ErrUnsupported]; the node is then left applied. Otherwise it is
// left as it was found, or as Others leave it.
type Conformance struct {
	// Action returns the action. It is called anew for every method call, always for the
	// same node, so that only state on the node survives between them, as between two
	// processes. At the start, the node must be in a state in which the action has
	// something to change.
	Action func() bootstrap.Action

	// Handlers undo what the action records, if it is a [bootstrap.Recorder] of some
	// kinds. The journal is in a directory of the test's own, and is opened anew for
	// every call too.
	Handlers []journal.Handler

	// State describes everything on the node that the action could touch, object by
	// object, except its records: the contents of a directory, the values of a kernel. If
	// nil, changes are seen through Check and CheckRevert only.
	State func() map[string]string

	// Others returns the same action of another agent, which records its changes
	// elsewhere, or not at all. If nil, other agents are not tested for.
	Others func() bootstrap.Action

	// Break makes Apply fail until mend is called. object is what the error must name,
	// such as a path. It is called twice. If nil, no failure is tested.
	Break func() (object string, mend func())
}

// Test tests the rules. It runs on the calling goroutine and starts no subtests,
// so it can be used in a test that is locked to a thread in other namespaces. It ends at
// the first broken rule, with t.Fatalf.
func (c Conformance) Test(t testing.TB) {
	t.Helper()
	dir := ""
	if len(c.Handlers) > 0 {
		dir = filepath.Join(t.TempDir(), "journal")
	}
	if err := c.test(t.Context(), dir); err != nil {
		t.Fatalf("the action breaks the contract: %v", err)
	}
}

// subject is the action under test, with the facts known about it.
type subject struct {
	Conformance
	first   []string // changes that Check named before anything was applied
	reverts bool
	dir     string // of the journal

	found, applied map[string]string // the node's state before and after Apply
}

// test tests one rule after the other, each on the node as the last one left it.
func (c Conformance) test(ctx context.Context, dir string) (err error) {
	s := &subject{Conformance: c, dir: dir}
	if err := s.covered(); err != nil {
		return err
	}
	s.found = s.state()
	if s.first, err = s.check(ctx); err != nil {
		return fmt.Errorf("the first Check: %w", err)
	}
	if len(s.first) == 0 {
		return errors.New("the first Check names no changes: this node cannot test the action")
	}
	apply, revert := s.succeed(s.apply(), ""), s.succeed(s.revert(), "")
	err = inOrder(ctx, s.pure, s.revertNothing, s.refuse(s.applyAgain()), s.fail, s.resume, apply, s.succeed(s.applyAgain(), "a second "))
	if err != nil || !s.reverts {
		return err
	}
	return inOrder(ctx, s.refuse(s.revert()), revert, s.succeed(s.revert(), "a second "), apply, revert, s.leaveOthers)
}

type rule func(context.Context) error

func inOrder(ctx context.Context, rules ...rule) error {
	for _, rule := range rules {
		if err := rule(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check calls Check, and checks the form of the answer.
func (s *subject) check(ctx context.Context) ([]string, error) {
	var changes []string
	err := s.with(ctx, func(ctx context.Context, a bootstrap.Action) (err error) {
		changes, err = a.Check(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changes, wellFormed(changes)
}

// checkRevert calls CheckRevert; ok is false for an action that has none.
func (s *subject) checkRevert(ctx context.Context) (changes []string, ok bool, err error) {
	if !s.reverts {
		return nil, false, nil
	}
	err = s.with(ctx, func(ctx context.Context, a bootstrap.Action) (err error) {
		r, is := s.undoes(ctx, a).(interface {
			CheckRevert(context.Context) ([]string, error)
		})
		if !is {
			return errors.ErrUnsupported
		}
		changes, err = r.CheckRevert(ctx)
		return err
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	return changes, true, wellFormed(changes)
}

// covered returns an error if no handler undoes a kind that the action declares.
func (s *subject) covered() error {
	r, ok := s.Action().(bootstrap.Recorder)
	switch {
	case !ok && len(s.Handlers) > 0:
		return errors.New("it does not declare what it records (it is not a bootstrap.Recorder), so a plan with a journal refuses it")
	case !ok:
		return nil
	}
	n := journal.Node{Handlers: s.Handlers}
	for _, kind := range r.Kinds() {
		if _, ok := n.Handles(kind); !ok {
			return fmt.Errorf("it records %s, which none of the Handlers undoes", kind)
		}
	}
	return nil
}

// with calls f with a new action, and the context in which it records, as in another
// process.
func (s *subject) with(ctx context.Context, f func(context.Context, bootstrap.Action) error) (err error) {
	if len(s.Handlers) == 0 {
		return f(ctx, s.Action())
	}
	n := &journal.Node{Dir: s.dir, Agent: "conformance", NoOwner: true, Handlers: s.Handlers}
	j, err := n.Open(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return f(journal.With(ctx, j.Step("conformance")), s.Action())
}

func (s *subject) callApply(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, a bootstrap.Action) error { return a.Apply(ctx) })
}

func (s *subject) callRevert(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, a bootstrap.Action) error {
		r, is := s.undoes(ctx, a).(interface{ Revert(context.Context) error })
		if !is {
			return errors.ErrUnsupported
		}
		return r.Revert(ctx)
	})
}

// undoes returns what undoes the action: the journal or, without handlers, itself.
func (s *subject) undoes(ctx context.Context, a bootstrap.Action) any {
	if len(s.Handlers) > 0 {
		return journal.From(ctx)
	}
	return a
}

func wellFormed(changes []string) error {
	for _, change := range changes {
		if strings.TrimSpace(change) == "" || strings.ContainsAny(change, "\r\n") {
			return fmt.Errorf("a change must be one line of text, and is %q", change)
		}
	}
	return nil
}

// is tests that the node is as it was found or, if it is applied, as Apply left it, and
// that Check and CheckRevert report and keep that.
func (s *subject) is(ctx context.Context, applied bool, when string) error {
	state, want := s.found, s.first
	if applied {
		state, want = s.applied, nil
	}
	if changed := differ(state, s.state()); changed != "" {
		return fmt.Errorf("the node differs %s: %s", when, changed)
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
	case revertible && len(before) == 0:
		return fmt.Errorf("CheckRevert %s names nothing, and must name what Revert would undo", when)
	case !revertible && len(before) > 0:
		return fmt.Errorf("CheckRevert %s names %q, and must name nothing", when, before)
	}
	again, _, err := s.checkRevert(ctx)
	if err == nil && !slices.Equal(before, again) {
		err = fmt.Errorf("it names %q, and before %q", again, before)
	}
	if err != nil {
		return fmt.Errorf("CheckRevert %s, asked again: %w", when, err)
	}
	return nil
}

func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
