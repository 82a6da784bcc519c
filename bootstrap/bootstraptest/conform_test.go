// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// verdict is a testing.TB that keeps the message of a failure.
type verdict struct {
	testing.TB
	failure string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// verdictOf runs a conformance test and returns its failure, "" if it passes.
func verdictOf(t *testing.T, test func(testing.TB)) string {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(v)
	}()
	<-done
	return v.failure
}

// node is the object of an action, and remembers more than the action should need.
type node struct {
	applied               bool
	checks, applies, undo int
	file                  string // not covered by Check
}

func (n *node) state() map[string]string { return map[string]string{"file": n.file} }

// action works as it should, except for the replaced methods.
type action struct {
	n           *node
	check       func(ctx context.Context, n *node) ([]string, error)
	apply, undo func(ctx context.Context, n *node) error
	hides       bool // what it would undo
}

func (a action) Check(ctx context.Context) ([]string, error) {
	a.n.checks++
	if a.check != nil {
		return a.check(ctx, a.n)
	}
	return check(a.n), nil
}

func check(n *node) []string {
	if n.applied {
		return nil
	}
	return []string{"apply it"}
}

func (a action) Apply(ctx context.Context) error {
	a.n.applies++
	if a.apply != nil {
		return a.apply(ctx, a.n)
	}
	return apply(ctx, a.n)
}

func apply(ctx context.Context, n *node) error {
	if ctx.Err() == nil && !n.applied {
		n.applied, n.file = true, "ours"
	}
	return ctx.Err()
}

func (a action) CheckUndo(context.Context) ([]string, error) {
	if a.n.applied && !a.hides {
		return []string{"undo it"}, nil
	}
	return nil, nil
}

func (a action) Undo(ctx context.Context) error {
	a.n.undo++
	if a.undo != nil {
		return a.undo(ctx, a.n)
	}
	return undo(ctx, a.n)
}

func undo(ctx context.Context, n *node) error {
	if ctx.Err() == nil && n.applied {
		n.applied, n.file = false, "theirs"
	}
	return ctx.Err()
}

var errBroken = errors.New("broken")

// says is a Check that always answers the same.
func says(changes []string, err error) func(context.Context, *node) ([]string, error) {
	return func(context.Context, *node) ([]string, error) { return changes, err }
}

func conform(a action) func(testing.TB) {
	return func(t testing.TB) { bootstraptest.Conform(t, func() bootstrap.Action { return a }, a.n.state) }
}

func TestConformPasses(t *testing.T) {
	heeding := func(ctx context.Context, n *node) ([]string, error) { return check(n), ctx.Err() }
	for _, a := range []action{{}, {check: heeding}} {
		a.n = &node{file: "theirs"}
		require.Empty(t, verdictOf(t, conform(a)))
		require.False(t, a.n.applied, "the node is left as it was found")
		require.Empty(t, verdictOf(t, func(t testing.TB) {
			bootstraptest.Conform(t, func() bootstrap.Action { return struct{ bootstrap.Action }{a} }, nil)
		}))
		require.True(t, a.n.applied, "without Undo it stays")
	}
}

// Each action breaks one rule, and the error names it.
func TestConformCatches(t *testing.T) {
	for name, tc := range map[string]struct {
		action action
		want   string
	}{
		"a check that fails":    {action{check: says(nil, errBroken)}, "the first Check: broken"},
		"nothing to change":     {action{check: says(nil, nil)}, "the first Check names no changes"},
		"a change of two lines": {action{check: says([]string{"a\nb"}, nil)}, `must be one line of printable text, and is "a\nb"`},
		"a change with escapes": {action{check: says([]string{"\x1b[2J"}, nil)}, `must be one line of printable text`},
		"a check that applies": {
			action{check: func(_ context.Context, n *node) ([]string, error) {
				defer func() { n.applied = true }()
				return check(n), nil
			}},
			"Check with a context that is done names []",
		},
		"a check that counts": {
			action{check: func(ctx context.Context, n *node) ([]string, error) {
				return []string{fmt.Sprint("apply it ", n.checks)}, ctx.Err()
			}},
			`and must name ["apply it 1"]`,
		},
		"a check that changes what it does not answer for": {
			action{check: func(_ context.Context, n *node) ([]string, error) {
				n.file += "!"
				return check(n), nil
			}},
			`the node differs after Undo: file is`,
		},
		"an apply that fails": {
			action{apply: func(ctx context.Context, _ *node) error { return cmp.Or(ctx.Err(), errBroken) }},
			"Apply: broken",
		},
		"an apply that does nothing": {
			action{apply: func(ctx context.Context, _ *node) error { return ctx.Err() }},
			"Check after Apply names",
		},
		"an apply that ignores a context that is done": {
			action{apply: func(_ context.Context, n *node) error { return apply(context.Background(), n) }},
			"Apply with a context that is done returns no error",
		},
		"an apply that changes the node though its context is done": {
			action{apply: func(ctx context.Context, n *node) error {
				_ = apply(context.Background(), n)
				return ctx.Err()
			}},
			`the node differs after Apply with a context that is done: file is "ours"`,
		},
		"an error other than the context's": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() != nil {
					return errBroken
				}
				return apply(ctx, n)
			}},
			"Apply with a context that is done returns an error other than the context's: broken",
		},
		"a second apply that changes something": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.applied {
					n.file += "!"
				}
				return apply(ctx, n)
			}},
			"the node differs after Apply: file is",
		},
		"an undo that is not foreseen": {action{hides: true}, "CheckUndo after Apply: it names []"},
		"an undo of nothing that changes something": {
			action{undo: func(ctx context.Context, n *node) error {
				n.file += "!"
				return undo(ctx, n)
			}},
			"the node differs after Undo: file is",
		},
		"an undo that removes what was there": {
			action{undo: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.applied {
					n.applied, n.file = false, ""
				}
				return ctx.Err()
			}},
			`the node differs after Undo: file is "" (was "theirs")`,
		},
		"an undo that ignores a context that is done": {
			action{undo: func(_ context.Context, n *node) error { return undo(context.Background(), n) }},
			"Undo with a context that is done returns no error",
		},
		"an undo that does nothing": {
			action{undo: func(ctx context.Context, _ *node) error { return ctx.Err() }},
			`the node differs after Undo: file is "ours"`,
		},
		"an undo that works once": {
			action{undo: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.applied && n.undo > 4 {
					return errBroken
				}
				return undo(ctx, n)
			}},
			"Undo: broken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.action.n = &node{file: "theirs"}
			require.Contains(t, verdictOf(t, conform(tc.action)), tc.want)
		})
	}
}

// A new action would not find the state of an earlier one, as another process would not.
func TestConformCatchesStateInTheAction(t *testing.T) {
	require.Contains(t, verdictOf(t, func(t testing.TB) {
		bootstraptest.Conform(t, func() bootstrap.Action { return &bootstraptest.Script{Changes: []string{"do it"}} }, nil)
	}), "Check after Apply names")
}

func TestScriptConforms(t *testing.T) {
	s := &bootstraptest.Script{Changes: []string{"first", "second"}}
	bootstraptest.Conform(t, func() bootstrap.Action { return s }, nil)
	changes, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.Changes, changes, "it is undone")
}
