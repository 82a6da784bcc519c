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

// Undoing an override restores the overridden state, and an object that every agent found as
// wanted stays.
func TestPLAN14_WhatWasFoundIsOverridden(t *testing.T) {
	for _, order := range [][]string{{"first", "second"}, {"second", "first"}} {
		s := newShared(t)
		s.v.now["x"] = "1"
		require.NoError(t, s.find(t, first))
		require.NoError(t, s.apply(t, insists("2"), whole))
		require.Equal(t, "2", s.v.now["x"])
		require.ErrorIs(t, s.apply(t, first, whole), journal.ErrConflict)
		for _, agent := range order {
			require.NoError(t, s.uninstall(t, tenant{name: agent}))
		}
		require.Equal(t, "1", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
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

// If an agent remakes an object that another had found as wanted, the other shares it from its
// next run on.
func TestPLAN14_WhatOneMadeIsSharedByWhoHasFoundIt(t *testing.T) {
	s := newShared(t)
	s.v.now["x"] = "1"
	require.NoError(t, s.find(t, first))
	s.v.now["x"] = "5"
	require.NoError(t, s.apply(t, second, whole))
	s.in(t, first, "apply", false, func(ctx context.Context, j *journal.Journal, _ *journal.Node) {
		changes, err := j.CheckWishes(ctx, first.claim(s))
		require.NoError(t, err)
		require.Equal(t, []string{`keep x also for this agent: agent "second" has made it`}, changes)
		require.NoError(t, j.Wish(ctx, first.claim(s)))
		require.Equal(t, value("5"), entries(t, j)[0].Before)
	})
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "1", s.v.now["x"])
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "5", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// A step that is no longer wanted, or an agent that has vanished, gives up the objects it
// found; the same owner may adopt them later.
func TestPLAN14_PLAN15_WhatWasFoundIsGivenUp(t *testing.T) {
	s := newShared(t)
	s.v.now["x"] = "1"
	other := tenant{name: "second", wants: "2"}
	for name, giveUp := range map[string]func(*journal.Journal) error{
		"step": func(j *journal.Journal) error { return j.Revert(step(t, j, "values")) },
		"agent": func(j *journal.Journal) error {
			left, err := j.Release(t.Context())
			require.Empty(t, left)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, s.find(t, first))
			require.ErrorIs(t, s.apply(t, other, whole), journal.ErrConflict)
			require.NoError(t, giveUp(s.open(t, first)))
			require.NoDirExists(t, s.dir)
			require.NoError(t, s.apply(t, other, whole))
			require.NoError(t, s.uninstall(t, other))
			require.Equal(t, "1", s.v.now["x"])
		})
	}
	require.NoError(t, s.find(t, first))
	s.in(t, first, "apply", true, func(ctx context.Context, j *journal.Journal, _ *journal.Node) {
		claim := first.claim(s)
		claim.Adoptable = true
		changes, err := j.CheckWishes(ctx, claim)
		require.NoError(t, err)
		require.Equal(t, []string{"adopt x: it is as wanted, and is undone with the rest"}, changes)
		require.NoError(t, j.Wish(ctx, claim))
	})
	require.NoError(t, s.uninstall(t, first))
	require.Empty(t, s.v.now["x"])
	require.NoDirExists(t, s.dir)
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
