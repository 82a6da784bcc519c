// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// needing keeps b until a is restored, which other programs may prevent.
type needing struct{ values }

func (n needing) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if e.Object == "b" && !p.WillUndo("a") && n.now["a"] != "" {
		return journal.Undo{}, fmt.Errorf("b, by a: %w", journal.ErrNeeded)
	}
	return n.values.Look(ctx, p, e)
}

// An object still needed stays recorded, and is no failure: a plan reports it as advice, when a
// step or everything is reverted, and when a step is no longer wanted. It is undone in the same
// pass as the object that needs it.
func TestPLAN6_WhatIsNeededStaysAndIsAdvice(t *testing.T) {
	v := newValues()
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "test", NoOwner: true, Handlers: []journal.Handler{needing{v}}}
	j, err := n.Open(t.Context(), nil)
	require.NoError(t, err)
	defer j.Close()
	plan := bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: filepath.Join(t.TempDir(), "lock")}, Journal: n,
		Steps: []bootstrap.Step{{Name: "one", Absent: true}},
	}
	for _, objects := range [][]string{{"a", "b"}, {"b", "a"}} {
		for _, object := range objects {
			v.set(t, step(t, j, "one"), j, object, "1", map[string][]string{"a": {"b"}}[object]...)
		}
		v.now["a"] = "theirs"
		for range 2 {
			for _, by := range []func(context.Context) (*bootstrap.Report, error){plan.CheckRevert, plan.Revert, plan.CheckRevertAll, plan.RevertAll} {
				report, err := by(t.Context())
				require.ErrorIs(t, err, journal.ErrChanged, "the error for a")
				require.NotContains(t, err.Error(), "b, by a")
				require.Equal(t, []string{"b, by a: still needed"}, report.Results[0].Advice)
			}
			report, err := plan.Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"b, by a: still needed", "no longer as it was left"}, report.Results[0].Advice)
		}
		require.Equal(t, "1", v.now["b"])
		v.now["a"] = "1"
		_, err := plan.RevertAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, "", v.now["b"])
		require.Empty(t, entries(t, j))
	}
}

// An object left for good takes the objects it needs along. Objects that others on the node
// need are not left, and are undone once the others are gone.
func TestPLAN6_WhatOthersNeedIsNotLeftForGood(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		v := newValues()
		n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "test", NoOwner: true, AcceptKept: true, Handlers: []journal.Handler{needing{v}}}
		j, err := n.Open(t.Context(), nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		v.set(t, step(t, j, "one"), j, "b", "1")
		if recorded {
			v.set(t, step(t, j, "one"), j, "a", "1", "b")
		}
		v.now["a"] = "theirs"
		for range 2 {
			_, err := j.RevertAll(t.Context())
			require.NoError(t, err)
			require.Equal(t, "1", v.now["b"])
		}
		left, err := j.LeftForGood()
		require.NoError(t, err)
		if recorded {
			require.Len(t, left, 2)
			require.Empty(t, entries(t, j))
			continue
		}
		require.Empty(t, left)
		require.Len(t, entries(t, j), 1)
		delete(v.now, "a")
		_, err = j.RevertAll(t.Context())
		require.NoError(t, err)
		require.Empty(t, v.now["b"])
		require.Empty(t, entries(t, j))
	}
}
