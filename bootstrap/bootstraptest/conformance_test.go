// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// seen is a conformance test, with all fields set, of an action that breaks at most one rule.
func seen(a action) bootstraptest.Conformance {
	a.n = &node{file: "theirs"}
	return bootstraptest.Conformance{
		Action: func() bootstrap.Action { return a },
		State:  a.n.state,
		Others: func() bootstrap.Action {
			return bootstrap.Func(a.Check, func(context.Context) error { a.n.applied, a.n.file = true, "others'"; return nil })
		},
		Break: func() (string, func()) { a.n.broken = true; return "the lamp", func() { a.n.broken = false } },
	}
}

// lampApply and lampRevert keep every rule.
func lampApply(ctx context.Context, n *node) error {
	if err := ctx.Err(); err != nil || n.applied {
		return err
	}
	n.recorded, n.file = true, "ours"
	if n.broken {
		return errors.New("turn on the lamp: no current")
	}
	return apply(ctx, n)
}

func lampRevert(ctx context.Context, n *node) error {
	if ctx.Err() == nil && n.recorded {
		n.file = "theirs"
	}
	return revert(ctx, n)
}

func TestConformancePasses(t *testing.T) {
	c := seen(action{apply: lampApply, revert: lampRevert})
	require.Empty(t, verdictOf(t, c.Test))
	unrecorded := seen(action{apply: lampApply, revert: unsupported})
	require.Empty(t, verdictOf(t, unrecorded.Test))
}

// Each action breaks one rule in a way that its own answers do not reveal.
func TestConformanceCatches(t *testing.T) {
	for name, tc := range map[string]struct {
		action action
		want   string
	}{
		"a revert that removes what was there": {
			action{revert: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.recorded {
					n.file = ""
				}
				return revert(ctx, n)
			}},
			`the node differs after an Apply that failed, and Revert: file is "" (was "theirs")`,
		},
		"a revert that undoes what others have applied": {
			action{revert: func(ctx context.Context, n *node) error {
				n.recorded = n.recorded || n.applied
				return lampRevert(ctx, n)
			}},
			`Apply and Revert change what Others have applied: file is "theirs" (was "others'")`,
		},
		"a revert of nothing that changes something": {
			action{revert: func(ctx context.Context, n *node) error {
				n.file += "!"
				return lampRevert(ctx, n)
			}},
			"the node differs after Revert with nothing applied",
		},
		"a check that changes something": {
			action{check: func(_ context.Context, n *node) ([]string, error) {
				n.file = "checked"
				return check(n), nil
			}},
			`the first Check changes the node: file is "checked" (was "theirs")`,
		},
		"a check that changes something later": {
			action{check: func(_ context.Context, n *node) ([]string, error) {
				if n.applied {
					n.file += "!"
				}
				return check(n), nil
			}},
			`Check or CheckRevert after Apply changes the node: file is "ours!`,
		},
		"an apply that returns an error other than its context's": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() != nil {
					return errBroken
				}
				return lampApply(ctx, n)
			}},
			"Apply with a context that is done returns an error other than the context's: broken",
		},
		"a second apply that changes something": {
			action{apply: func(ctx context.Context, n *node) error {
				if ctx.Err() == nil && n.applied {
					n.file += "!"
				}
				return lampApply(ctx, n)
			}},
			"the node differs after a second Apply",
		},
		"an error that does not name the object": {
			action{apply: func(ctx context.Context, n *node) error {
				if err := lampApply(ctx, n); !n.broken || ctx.Err() != nil {
					return err
				}
				return errBroken
			}},
			`the error of an Apply that fails does not name "the lamp": broken`,
		},
		"an apply that fails in silence": {
			action{apply: func(ctx context.Context, n *node) error {
				if err := lampApply(ctx, n); !n.broken || ctx.Err() != nil {
					return err
				}
				return nil
			}},
			"Apply on the broken node returns no error",
		},
		"an apply that fails before it records": {
			action{apply: func(ctx context.Context, n *node) error {
				err := lampApply(ctx, n)
				n.recorded = n.recorded && !n.broken
				return err
			}},
			"the node differs after an Apply that failed, and Revert",
		},
		"a revert that cannot undo half of it": {
			action{revert: func(ctx context.Context, n *node) error {
				if n.recorded && !n.applied {
					return errBroken
				}
				return lampRevert(ctx, n)
			}},
			"Revert after an Apply that failed: broken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.action.apply == nil {
				tc.action.apply = lampApply
			}
			if tc.action.revert == nil {
				tc.action.revert = lampRevert
			}
			require.Contains(t, verdictOf(t, seen(tc.action).Test), tc.want)
		})
	}
}
