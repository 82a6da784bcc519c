// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// kept is a kind of values in memory, and the want of one.
func kept(values map[string]string) (*ledger.Kind, ledger.Wants) {
	k := &ledger.Kind{
		Name: "value",
		Read: func(_ context.Context, object string) (ledger.State, error) {
			if v, ok := values[object]; ok {
				return ledger.State{Type: "value", Value: v}, nil
			}
			return ledger.State{}, nil
		},
		Write: func(_ context.Context, object string, to ledger.State) error {
			if values[object] = to.Value; to.IsZero() {
				delete(values, object)
			}
			return nil
		},
	}
	return k, ledger.Wants{List: []ledger.Want{{Kind: k, Object: "a", To: ledger.State{Type: "value", Value: "1"}}}}
}

// applied applies a step, without an error.
func applied(t *testing.T, b *ledger.Book, step string, wants ledger.Wants) ledger.Outcome {
	t.Helper()
	done, err := b.Apply(t.Context(), step, wants)
	require.NoError(t, err)
	return done
}

// checked checks a step, without an error.
func checked(t *testing.T, b *ledger.Book, step string, wants ledger.Wants) ledger.Outcome {
	t.Helper()
	would, err := b.Check(t.Context(), step, wants)
	require.NoError(t, err)
	return would
}

// undoes has all of an agent undone, without an error.
func undoes(t *testing.T, b *ledger.Book) []ledger.Undone {
	t.Helper()
	all, err := b.Undo(t.Context(), nil)
	require.NoError(t, err)
	return all
}

// statusOf is what is recorded.
func statusOf(t *testing.T, b *ledger.Book) ledger.Status {
	t.Helper()
	status, err := b.Status(t.Context())
	require.NoError(t, err)
	return status
}

// process is one of an owner's: its name is the owner's and a number. The owner A is a, told
// to take over; nobody and any are processes without an owner.
func process(t *testing.T, dir, name string, kinds ...*ledger.Kind) *ledger.Book {
	t.Helper()
	owner := strings.TrimRight(name, "123")
	l := &ledger.Ledger{Dir: dir, Agent: "agent", Owner: strings.ToLower(owner), TakeOver: owner == "A", AnyOwner: owner == "any", Kinds: kinds}
	if l.NoOwner = owner == "nobody" || owner == "any"; l.NoOwner {
		l.Owner = ""
	}
	book, err := l.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	return book
}

// perform does what a plan does.
func perform(t *testing.T, b *ledger.Book, wants ledger.Wants, op string) error {
	t.Helper()
	ctx := t.Context()
	switch op {
	case "verify":
		return b.Verify(ctx)
	case "check-apply":
		return b.MayApply(ctx)
	case "apply":
		if err := b.Claim(ctx); err != nil {
			return err
		}
		_, err := b.Apply(ctx, "one", wants)
		return err
	case "check-revert":
		return b.MayUndo(ctx)
	}
	if err := b.MayUndo(ctx); err != nil {
		return err
	}
	_, err := b.Undo(ctx, nil)
	return err
}

// Each line is what several processes do on one node, in order; after a slash is what is
// said.
func TestPLAN11_WhatEachOfOverlappingOwnersMayDo(t *testing.T) {
	says := map[string]string{"other": "has another owner", "revoked": "no longer belongs to this owner", "none": "nothing was applied"}
	for name, script := range map[string]string{
		"a rolling update with surge": "a1 apply, a1 apply, b1 apply, a1 check-apply/revoked, a1 apply/revoked, a1 verify/revoked, a2 verify/other, " +
			"a1 revert/other, a2 check-revert/other, b1 apply, b1 revert",
		"the older pod's container restarts during the update":   "a1 apply, b1 apply, a2 check-apply/other, a2 apply/other, a2 revert/other, b1 verify, b2 apply, b1 apply",
		"the newer pod's container restarts":                     "a1 apply, b1 apply, b2 apply, b1 verify, a1 verify/revoked, b2 revert",
		"an administrator uninstalls in the middle":              "a1 apply, nobody1 revert/other, any1 revert, a1 apply/revoked, a1 verify/revoked, a2 apply, a2 revert",
		"an administrator uninstalls in the middle of an update": "a1 apply, b1 apply, any1 revert, a1 apply/revoked, b1 apply/revoked, b2 apply, b2 apply",
		"an administrator applies beside an agent":               "a1 apply, nobody1 apply, a1 apply, nobody1 apply, b1 apply, nobody1 apply/revoked, nobody2 apply, b1 verify",
		"the node is uninstalled and claimed by another":         "a1 apply, any1 revert, b1 apply, a1 apply/revoked, a1 verify/revoked, b1 apply",
		"the node has no named owner":                            "nobody1 apply, nobody1 apply, nobody2 apply, nobody2 revert, nobody1 apply/revoked, nobody3 apply",
		"an owner takes over from nobody":                        "nobody1 apply, a1 apply, nobody1 apply/revoked, nobody2 revert/other, a1 revert",
		"a superseded owner is told to take over":                "a1 apply, b1 apply, a2 apply/other, A1 apply, b1 verify/revoked, b2 apply/other, a3 apply, a3 revert",
		"a loop beside starts before its owner has applied":      "a1 verify/none, a2 apply, a1 verify, a3 verify, b1 apply, a1 verify/revoked",
	} {
		t.Run(name, func(t *testing.T) {
			dir, values := filepath.Join(t.TempDir(), "state"), map[string]string{}
			k, wants := kept(values)
			books := map[string]*ledger.Book{}
			for i, event := range strings.Split(script, ", ") {
				event, refused, _ := strings.Cut(event, "/")
				who, op, _ := strings.Cut(event, " ")
				if books[who] == nil {
					books[who] = process(t, dir, who, k)
				}
				before := fileOf(t, dir)
				err := perform(t, books[who], wants, op)
				if refused == "" {
					require.NoError(t, err, "event %d: %s", i, event)
				} else {
					require.ErrorContains(t, err, says[refused], "event %d: %s", i, event)
					require.ErrorIs(t, err, map[string]error{"other": ledger.ErrNotOwner, "revoked": ledger.ErrRevoked, "none": ledger.ErrNotApplied}[refused])
					require.Contains(t, []string{"ledger.not-owner", "ledger.revoked", "ledger.not-applied"}, code.Of(err))
					require.Equal(t, before, fileOf(t, dir), "a refused owner changes nothing")
				}
				if op == "revert" && refused == "" {
					require.NoDirExists(t, dir)
					require.Empty(t, values)
				}
			}
		})
	}
}

// fileOf returns the ledger's file. Nil: there is none.
func fileOf(t *testing.T, dir string) []byte {
	content, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return content
}

func TestPLAN11_TheErrorNamesTheOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for _, who := range []string{"pod-a", "pod-b"} {
		require.NoError(t, process(t, dir, who).Claim(t.Context()))
	}
	name, generation, err := process(t, dir, "nobody").Owner()
	require.NoError(t, err)
	require.Equal(t, "pod-b", name)
	require.Equal(t, 2, generation)
	err = process(t, dir, "pod-a").Claim(t.Context())
	require.ErrorContains(t, err, `the agent has another owner: "pod-b" (generation 2, since 2`)
	require.ErrorContains(t, err, `after "pod-a"`)
	require.ErrorContains(t, process(t, dir, "nobody").MayUndo(t.Context()), "no owner is configured")
	require.NoError(t, process(t, dir, "any").MayUndo(t.Context()))
}

// An owner is one agent's: another has its own, and the last one to go takes the file along.
func TestPLAN11_PLAN14_EachAgentHasItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	k, wants := kept(map[string]string{})
	open := func(agent, owner string) *ledger.Book {
		book, err := (&ledger.Ledger{Dir: dir, Agent: agent, Owner: owner, Kinds: []*ledger.Kind{k}}).Open(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, book.Close()) })
		return book
	}
	acme, mesh := open("acme", "a"), open("mesh", "b")
	for _, b := range []*ledger.Book{acme, mesh} {
		require.NoError(t, perform(t, b, wants, "apply"))
	}
	all, err := mesh.Agents(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, []string{"acme", "mesh"}, []string{all[0].Name, all[1].Name}, "in the order in which they came")
	require.Equal(t, []string{"a", "b"}, []string{all[0].Owner, all[1].Owner})
	require.NoError(t, perform(t, open("acme", "c"), wants, "apply"))
	require.NoError(t, mesh.Verify(t.Context()))
	require.ErrorIs(t, perform(t, acme, wants, "revert"), ledger.ErrNotOwner)
	require.NoError(t, perform(t, mesh, wants, "revert"))
	require.NoError(t, mesh.MayApply(t.Context()), "it has uninstalled itself")
	require.NoError(t, perform(t, open("acme", "c"), wants, "revert"))
	require.NoDirExists(t, dir)
}

// What an apply undoes, since a step is no longer wanted, takes no owner away, also if nothing
// is left. A revert does.
func TestPLAN11_PLAN12_AnApplyKeepsItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	k, wants := kept(map[string]string{})
	for _, reverts := range []bool{false, true} {
		book := process(t, dir, "a1", k)
		require.NoError(t, perform(t, book, wants, "apply"))
		if reverts {
			require.NoError(t, book.MayUndo(t.Context()))
		}
		_, err := book.Undo(t.Context(), []string{"one"})
		require.NoError(t, err)
		name, generation, err := book.Owner()
		require.NoError(t, err)
		require.Equal(t, !reverts, name == "a" && generation == 1)
		require.NoError(t, book.MayApply(t.Context()))
	}
	require.NoDirExists(t, dir)
}

// An uninstall that has begun and not ended stops what runs beside it. An apply begins anew.
func TestPLAN11_AnUninstallThatHasBegunStopsOtherRuns(t *testing.T) {
	dir, values := filepath.Join(t.TempDir(), "state"), map[string]string{}
	k, wants := kept(values)
	guard := process(t, dir, "a1", k)
	require.NoError(t, perform(t, guard, wants, "apply"))
	values["a"] = "another program's"
	require.ErrorIs(t, perform(t, process(t, dir, "a2", k), wants, "revert"), ledger.ErrChanged)
	for _, op := range []string{"verify", "apply", "check-apply"} {
		err := perform(t, guard, wants, op)
		require.ErrorIs(t, err, ledger.ErrRevoked)
		require.ErrorContains(t, err, "an uninstall was begun at ")
	}
	a3 := process(t, dir, "a3", k)
	needs, err := a3.NeedsClaim(t.Context())
	require.NoError(t, err)
	require.True(t, needs)
	require.NoError(t, perform(t, a3, wants, "apply"))
	require.NoError(t, guard.Verify(t.Context()))
}

// A run with nothing to do records nothing: it has claimed, is as before, and its process
// counts as one that has applied.
func TestPLAN1_ARunWithNothingToDoWritesNoClaim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	k, wants := kept(map[string]string{})
	needs := func(b *ledger.Book) bool {
		needs, err := b.NeedsClaim(t.Context())
		require.NoError(t, err)
		return needs
	}
	claims := func(b *ledger.Book) bool {
		look := checked(t, b, "one", wants)
		require.Empty(t, look.Changes)
		return look.Claims
	}
	first := process(t, dir, "a1", k)
	require.True(t, needs(first))
	require.NoError(t, perform(t, first, wants, "apply"))
	require.False(t, needs(first))
	require.False(t, claims(first))
	mesh, err := (&ledger.Ledger{Dir: dir, Agent: "mesh", NoOwner: true}).Open(t.Context())
	require.NoError(t, err)
	defer mesh.Close()
	require.False(t, needs(mesh))
	second := process(t, dir, "a2", k)
	require.False(t, needs(second), "the recorded process is alive: it is this one")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "content.00ff"), []byte("of a killed run"), 0o600))
	require.True(t, needs(second))
	require.NoError(t, second.Claim(t.Context()))
	require.NoFileExists(t, filepath.Join(dir, "content.00ff"))
	third := process(t, dir, "b1", k)
	require.True(t, needs(third))
}

// What is as wanted and not recorded yet is something to record.
func TestPLAN19_WhatIsAsWantedIsRecordedToo(t *testing.T) {
	dir, values := filepath.Join(t.TempDir(), "state"), map[string]string{"a": "1"}
	k, wants := kept(values)
	book := process(t, dir, "a1", k)
	for _, claims := range []bool{true, false} {
		look := checked(t, book, "one", wants)
		require.Empty(t, look.Changes)
		require.Equal(t, claims, look.Claims)
		require.Equal(t, claims, fileOf(t, dir) == nil, "a check records nothing")
		applied(t, book, "one", wants)
	}
}

// The report of a run is kept as long as its agent has something, and after a failure that
// recorded nothing, but not after an undoing that leaves nothing.
func TestPLAN18_PLAN21_TheLastReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	k, wants := kept(map[string]string{})
	book := process(t, dir, "nobody", k)
	last := func() string {
		all, err := book.Agents(t.Context())
		require.NoError(t, err)
		if len(all) == 0 {
			return ""
		}
		return string(all[0].Report)
	}
	require.Empty(t, last())
	require.NoError(t, book.Claim(t.Context()))
	require.NoError(t, book.SaveReport(t.Context(), []byte("failed")))
	require.Equal(t, "failed", last())
	all, err := book.Agents(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.WithinDuration(t, time.Now(), all[0].Seen, time.Hour)
	require.NoError(t, perform(t, book, wants, "apply"))
	require.NoError(t, book.SaveReport(t.Context(), []byte("applied")))
	require.Equal(t, "applied", last())
	require.ErrorContains(t, book.SaveReport(t.Context(), make([]byte, 256<<10+1)), "at most 262144 are kept")
	require.NoError(t, perform(t, book, wants, "revert"))
	require.NoError(t, book.SaveReport(t.Context(), []byte("reverted")))
	require.Empty(t, last())
	require.NoDirExists(t, dir)
}

func TestLedgersAreValid(t *testing.T) {
	for says, l := range map[string]*ledger.Ledger{
		"is a nil *Ledger":      nil,
		"is not an absolute":    {Dir: "relative", Agent: "a", NoOwner: true},
		"below the root":        {Dir: "/", Agent: "a", NoOwner: true},
		"is not a DNS label":    {Agent: "a.b", NoOwner: true},
		"no owner is named":     {Agent: "a"},
		"and NoOwner is set":    {Agent: "a", Owner: "a", NoOwner: true},
		"kind 1 of 1 is nil":    {Agent: "a", NoOwner: true, Kinds: []*ledger.Kind{nil}},
		"is not UTF-8 of up to": {Agent: "a", Owner: "\xff"},
	} {
		require.ErrorContains(t, l.Validate(), says)
	}
	require.NoError(t, (&ledger.Ledger{Agent: "a", NoOwner: true}).Validate())
}
