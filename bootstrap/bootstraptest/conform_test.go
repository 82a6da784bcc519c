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

// verdict is a testing.TB that keeps Conform's message.
type verdict struct {
	testing.TB
	failure string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// conform runs Conform and returns its failure, "" if it passes.
func conform(t *testing.T, newAction func() bootstrap.Action) string {
	return verdictOf(t, func(t testing.TB) { bootstraptest.Conform(t, newAction) })
}

func verdictOf(t testing.TB, test func(testing.TB)) string {
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
	applied, recorded bool
	checks, applies   int
	reverts           int

	file   string // not covered by Check
	broken bool
}

func (n *node) state() map[string]string { return map[string]string{"file": n.file} }

// action works as a Reverter should, except for the replaced methods.
type action struct {
	n                  *node
	check, checkRevert func(ctx context.Context, n *node) ([]string, error)
	apply, revert      func(ctx context.Context, n *node) error
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
	if ctx.Err() == nil {
		n.applied, n.recorded = true, true
	}
	return ctx.Err()
}

func (a action) Revert(ctx context.Context) error {
	a.n.reverts++
	if a.revert != nil {
		return a.revert(ctx, a.n)
	}
	return revert(ctx, a.n)
}

func revert(ctx context.Context, n *node) error {
	if ctx.Err() == nil && n.recorded {
		n.applied, n.recorded = false, false
	}
	return ctx.Err()
}

func (a action) CheckRevert(ctx context.Context) ([]string, error) {
	if a.checkRevert != nil {
		return a.checkRevert(ctx, a.n)
	}
	return checkRevert(a.n), nil
}

func checkRevert(n *node) []string {
	if n.recorded {
		return []string{"take it back"}
	}
	return nil
}

var errBroken = errors.New("broken")

// says is a Check or CheckRevert that always answers the same.
func says(changes []string, err error) func(context.Context, *node) ([]string, error) {
	return func(context.Context, *node) ([]string, error) { return changes, err }
}

func unsupported(context.Context, *node) error { return errors.ErrUnsupported }

func TestConformPasses(t *testing.T) {
	for name, a := range map[string]action{
		"reverter":        {},
		"no state":        {revert: unsupported},
		"no check-revert": {checkRevert: says(nil, errors.ErrUnsupported)},
		"check heeds its context": {check: func(ctx context.Context, n *node) ([]string, error) {
			return check(n), ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a.n = new(node)
			require.Empty(t, conform(t, func() bootstrap.Action { return a }))
			require.Equal(t, name == "no state", a.n.applied, "the node is left as found, if possible")
		})
	}
	t.Run("no reverter", func(t *testing.T) {
		a := action{n: new(node)}
		require.Empty(t, conform(t, func() bootstrap.Action { return bootstrap.Func(a.Check, a.Apply) }))
		require.True(t, a.n.applied)
	})
}

// Each action breaks one rule, and the error names it.
func TestConformCatches(t *testing.T) {
	for name, tc := range map[string]struct {
		action action
		want   string
	}{
		"a check that fails": {
			action{check: says(nil, errBroken)},
			"the first Check: broken",
		},
		"nothing to change": {
			action{check: says(nil, nil)},
			"the first Check names no changes",
		},
		"a change of two lines": {
			action{check: says([]string{"a\nb"}, nil)},
			`must be one line of text, and is "a\nb"`,
		},
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
			`Check before Apply names ["apply it 3"], and must name ["apply it 1"]`,
		},
		"a check that undoes": {
			action{check: func(_ context.Context, n *node) ([]string, error) {
				defer func() { n.applied = false }()
				return check(n), nil
			}},
			"Check after Apply, asked again names",
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
			"Check after Apply with a context that is done names []",
		},
		"an apply that toggles": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil {
					n.applied, n.recorded = !n.applied, true
				}
				return ctx.Err()
			}},
			"Check after a second Apply names",
		},
		"a revert of what was not applied that fails": {
			action{revert: func(ctx context.Context, n *node) error {
				if !n.recorded {
					return errBroken
				}
				return revert(ctx, n)
			}},
			"Revert with nothing applied: broken",
		},
		"a revert of what was not applied that changes the node": {
			action{revert: func(ctx context.Context, n *node) error {
				n.applied = !n.applied
				return ctx.Err()
			}},
			"Check after Revert with nothing applied names []",
		},
		"a revert that ignores a context that is done": {
			action{revert: func(_ context.Context, n *node) error { return revert(context.Background(), n) }},
			"Revert with a context that is done returns no error",
		},
		"a revert that fails": {
			action{revert: func(ctx context.Context, n *node) error {
				if n.applied && ctx.Err() == nil {
					return errBroken
				}
				return ctx.Err()
			}},
			"Revert: broken",
		},
		"a revert that does nothing": {
			action{revert: func(ctx context.Context, _ *node) error { return ctx.Err() }},
			"Check after Revert names []",
		},
		"a revert that works once": {
			action{revert: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.applied && n.reverts > 4 {
					return errBroken
				}
				return revert(ctx, n)
			}},
			"Revert: broken",
		},
		"an apply that does not record again": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil {
					n.applied, n.recorded = true, n.applies <= 3
				}
				return ctx.Err()
			}},
			"CheckRevert after Apply names nothing",
		},
		"a check-revert that fails": {
			action{checkRevert: says(nil, errBroken)},
			"CheckRevert after Revert with nothing applied: broken",
		},
		"a check-revert that finds changes not made": {
			action{checkRevert: says([]string{"take it back"}, nil)},
			`CheckRevert after Revert with nothing applied names ["take it back"], and must name nothing`,
		},
		"a check-revert that finds nothing": {
			action{checkRevert: says(nil, nil)},
			"CheckRevert after Apply names nothing",
		},
		"a check-revert that reverts": {
			action{checkRevert: func(ctx context.Context, n *node) ([]string, error) {
				defer func() { _ = revert(ctx, n) }()
				return checkRevert(n), nil
			}},
			`CheckRevert after Apply, asked again: it names [], and before ["take it back"]`,
		},
		"a check-revert of two lines": {
			action{checkRevert: func(_ context.Context, n *node) ([]string, error) {
				if n.recorded {
					return []string{"a\nb"}, nil
				}
				return nil, nil
			}},
			`CheckRevert after Apply: a change must be one line`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.action.n = new(node)
			require.Contains(t, conform(t, func() bootstrap.Action { return tc.action }), tc.want)
		})
	}
}

// A new action would not find the state of an earlier one, as another process would not.
func TestConformCatchesStateInTheAction(t *testing.T) {
	require.Contains(t, conform(t, func() bootstrap.Action { return &bootstraptest.Script{Changes: []string{"do it"}} }), "Check after Apply names")
}
