// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// in does what a plan's apply of one action does, without the change.
func (s shared) in(t *testing.T, a tenant, op string, adopt bool, f func(ctx context.Context, j *journal.Journal, n *journal.Node)) {
	n := &journal.Node{Dir: s.dir, Agent: a.name, NoOwner: true, Override: a.force, Adopt: adopt, Handlers: []journal.Handler{s.v}}
	j, err := n.Open(t.Context(), nil)
	require.NoError(t, err)
	defer j.Close()
	ctx, leave, err := j.Enter(t.Context(), op)
	require.NoError(t, err)
	f(n.WithStep(ctx, "values"), j, n)
	require.NoError(t, leave())
}

// find applies the agent's plan to objects that are already as wanted.
func (s shared) find(t *testing.T, a tenant) (err error) {
	require.Equal(t, a.wants, s.v.now["x"])
	s.in(t, a, "apply", false, func(ctx context.Context, j *journal.Journal, _ *journal.Node) {
		var changes []string
		changes, err = j.CheckWishes(ctx, a.claim(s))
		require.Empty(t, changes)
		require.NoError(t, j.SaveReport([]byte("{}")))
	})
	return err
}

func (a tenant) claim(s shared) journal.Wish {
	return journal.Wish{Entry: a.entry(s), Met: s.v.now["x"] == a.wants, Claim: true}
}

// An object that an agent found in the wanted state is recorded, although nothing is changed:
// an agent that wants another state gets an error. Undoing drops the record, whatever the state
// is by then.
func TestPLAN14_WhatWasFoundAsWantedIsAWishToo(t *testing.T) {
	s := newShared(t)
	s.v.now["x"] = "1"
	s.in(t, first, "check", false, func(ctx context.Context, j *journal.Journal, n *journal.Node) {
		changes, err := j.CheckWishes(ctx, first.claim(s))
		require.NoError(t, err)
		require.Empty(t, changes, "a check lists no changes")
		require.NoDirExists(t, s.dir, "and records nothing")
		require.True(t, n.Wishes(ctx), "but the plan is to apply")
	})
	require.NoError(t, s.find(t, first))
	before, err := os.ReadFile(filepath.Join(s.dir, "first.journal"))
	require.NoError(t, err)
	require.NoError(t, s.find(t, first))
	after, err := os.ReadFile(filepath.Join(s.dir, "first.journal"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "recorded once")
	s.in(t, first, "check", false, func(ctx context.Context, j *journal.Journal, n *journal.Node) {
		_, err := j.CheckWishes(ctx, first.claim(s))
		require.NoError(t, err)
		require.False(t, n.Wishes(ctx))
		require.Empty(t, entries(t, j), "the record is not a change")
		_, known, err := j.Lookup(ctx, "acme/value", "x")
		require.NoError(t, err)
		require.False(t, known)
		empty, err := j.Empty()
		require.NoError(t, err)
		require.False(t, empty)
	})

	err = s.apply(t, tenant{name: "second", wants: "2"}, whole)
	require.ErrorIs(t, err, journal.ErrConflict)
	require.ErrorContains(t, err, `agent "first" has 1, and this one wants 2`)

	s.v.now["x"] = "7" // by another program
	would, err := s.open(t, first).CheckRevertAll(t.Context())
	require.NoError(t, err)
	require.Empty(t, would)
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "7", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// Two agents find the value, a third program changes it, and one of the two puts it right: the
// third one's value is restored when the last of the two is uninstalled, in either order.
func TestPLAN14_TheLastThatFoundItBringsBackWhatAnotherHasReplaced(t *testing.T) {
	for _, order := range [][]tenant{{first, second}, {second, first}} {
		s := newShared(t)
		s.v.now["x"] = "1"
		require.NoError(t, s.find(t, first))
		require.NoError(t, s.find(t, second))
		s.v.now["x"] = "5"
		require.NoError(t, s.apply(t, first, whole))
		require.NoError(t, s.uninstall(t, order[0]))
		require.Equal(t, "1", s.v.now["x"], "%s still wants it", order[1].name)
		require.NoError(t, s.uninstall(t, order[1]))
		require.Equal(t, "5", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// Another boot has other values: an object found in this boot counts in this boot only.
func TestPLAN14_WhatWasFoundEndsWithTheBoot(t *testing.T) {
	s := newShared(t)
	s.v.now["x"] = "1"
	for i, boot := range []string{"one", "two"} {
		n := &journal.Node{Dir: s.dir, Agent: "first", NoOwner: true, Boot: boot, Handlers: []journal.Handler{s.v}}
		j, err := n.Open(t.Context(), nil)
		require.NoError(t, err)
		claim := first.claim(s)
		claim.Boot = boot
		require.NoError(t, j.Wish(step(t, j, "values"), claim))
		second := &journal.Node{Dir: s.dir, Agent: "second", NoOwner: true, Boot: []string{"one", "three"}[i], Handlers: []journal.Handler{s.v}}
		k, err := second.Open(t.Context(), nil)
		require.NoError(t, err)
		_, err = k.CheckWishes(step(t, k, "values"), tenant{name: "second", wants: "2"}.claim(s))
		if boot == "one" {
			require.ErrorIs(t, err, journal.ErrConflict)
			continue
		}
		require.NoError(t, err)
	}
	require.NoError(t, s.uninstall(t, first))
	require.NoDirExists(t, s.dir)
}
