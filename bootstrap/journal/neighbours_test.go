// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// tenant is one of several agents on a node that want the same value.
type tenant struct {
	name  string
	wants string
	force bool
}

// shared is such a node.
type shared struct {
	dir string
	v   values
}

func newShared(t *testing.T) shared {
	s := shared{filepath.Join(t.TempDir(), "state"), newValues()}
	s.v.now["x"] = "0"
	return s
}

func (s shared) open(t *testing.T, a tenant) *journal.Journal {
	n := journal.Node{Dir: s.dir, Agent: a.name, NoOwner: true, Override: a.force, Handlers: []journal.Handler{s.v}}
	j, err := n.Open(t.Context(), nil)
	require.NoError(t, err)
	return j
}

func (a tenant) entry(s shared) journal.Entry {
	return journal.Entry{Kind: "acme/value", Object: "x", Before: value(s.v.now["x"]), After: value(a.wants)}
}

// apply does what an action's Check and Apply do, and ends after some steps.
func (s shared) apply(t *testing.T, a tenant, steps int) error {
	j := s.open(t, a)
	defer j.Close()
	ctx := step(t, j, "values")
	met := s.v.now["x"] == a.wants
	wish := journal.Wish{Entry: a.entry(s), Met: met}
	if _, err := j.CheckWishes(ctx, wish); err != nil {
		return err
	}
	if met {
		if e, known, err := j.Lookup(ctx, "acme/value", "x"); err != nil || known && !e.Done {
			return errors.Join(err, j.Complete(ctx, a.entry(s)))
		}
		return j.Wish(ctx, wish)
	}
	if steps == 0 {
		return nil
	}
	if err := j.Begin(ctx, a.entry(s)); err != nil || steps == 1 {
		return err
	}
	if s.v.now["x"] = a.wants; steps == 2 {
		return nil
	}
	return j.Complete(ctx, a.entry(s))
}

const whole = 3

func (s shared) uninstall(t *testing.T, a tenant) error {
	j := s.open(t, a)
	defer j.Close()
	_, err := j.RevertAll(t.Context())
	return err
}

var (
	first  = tenant{name: "first", wants: "1"}
	second = tenant{name: "second", wants: "1"}
)

func TestPLAN14_TheLastOneThatWantsItTakesItAway(t *testing.T) {
	for _, order := range [][]tenant{{first, second}, {second, first}} {
		s := newShared(t)
		require.NoError(t, s.apply(t, first, whole))
		j := s.open(t, second)
		changes, err := j.CheckWishes(step(t, j, "values"), journal.Wish{Entry: second.entry(s), Met: true})
		require.NoError(t, err)
		require.Equal(t, []string{`keep x also for this agent: agent "first" has made it`}, changes)
		require.NoError(t, s.apply(t, second, whole))
		again, err := j.CheckWishes(step(t, j, "values"), journal.Wish{Entry: second.entry(s), Met: true})
		require.NoError(t, err)
		require.Empty(t, again)

		would, err := s.open(t, order[0]).CheckRevertAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("leave x to agent %q, which wants it too", order[1].name), would[0].Change)
		require.NoError(t, s.uninstall(t, order[0]))
		require.Equal(t, "1", s.v.now["x"])
		require.NoFileExists(t, filepath.Join(s.dir, order[0].name+".journal"))
		require.NoError(t, s.uninstall(t, order[1]))
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

func TestPLAN14_ADifferentWishIsAConflict(t *testing.T) {
	s := newShared(t)
	other := tenant{name: "second", wants: "2"}
	require.NoError(t, s.apply(t, first, whole))
	err := s.apply(t, other, whole)
	require.ErrorIs(t, err, journal.ErrConflict)
	require.EqualError(t, err, `x: another agent wants it differently: agent "first" has 1, and this one wants 2: uninstall or release that agent, change one of the two, or override it`)
	j := s.open(t, other)
	require.ErrorIs(t, j.Begin(step(t, j, "values"), other.entry(s)), journal.ErrConflict, "an action that does not check wishes")
	require.Equal(t, "1", s.v.now["x"])
	require.NoFileExists(t, filepath.Join(s.dir, "second.journal"))

	other.force = true
	require.NoError(t, s.apply(t, other, whole))
	require.Equal(t, "2", s.v.now["x"])
	require.ErrorIs(t, s.apply(t, first, whole), journal.ErrConflict, "the value does not flip")
	other.force = false
	require.NoError(t, s.apply(t, other, whole), "it was reported once")
	require.NoError(t, s.uninstall(t, other))
	require.Equal(t, "1", s.v.now["x"], "the other agent's value")
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
}

func TestPLAN14_ADamagedFileStopsItsOwnAgentOnly(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, second, whole))
	path := filepath.Join(s.dir, "first.journal")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(raw, "damaged\n"...), 0o600))
	_, err = (&journal.Node{Dir: s.dir, Agent: "first", NoOwner: true}).Open(t.Context(), nil)
	require.ErrorIs(t, err, journal.ErrUnreadable)
	s.in(t, second, "check", false, func(ctx context.Context, j *journal.Journal, n *journal.Node) {
		_, err := j.CheckWishes(ctx, second.claim(s))
		require.NoError(t, err)
		require.Len(t, n.Advice(ctx), 1)
		require.Contains(t, n.Advice(ctx)[0], `the wishes of agent "first" are known only as far as its journal is undamaged: `+path)
	})
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "1", s.v.now["x"], "the records before the damage count")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
}

func TestPLAN14_AnAgentThatVanishedIsReleased(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, second, whole))
	gone := open(t, s.dir, journal.Node{Agent: "first"}) // has none of its handlers
	alone := journal.Entry{Kind: "other/thing", Object: "y", After: value("1")}
	require.NoError(t, gone.Begin(step(t, gone, "values"), alone))
	left, err := gone.Release(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "y", left[0].Object)
	named, err := open(t, s.dir, journal.Node{Agent: "first"}).LeftForGood()
	require.NoError(t, err)
	require.Equal(t, "y", named[0].Object)
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "0", s.v.now["x"], "the original comes back")
}

// An agent that has overridden another is released, and leaves its value: the other agent knows
// it as that agent's.
func TestPLAN14_OneThatHasOverriddenIsReleased(t *testing.T) {
	for _, applies := range []bool{false, true} {
		s := newShared(t)
		require.NoError(t, s.apply(t, first, whole))
		require.NoError(t, s.apply(t, tenant{name: "second", wants: "2", force: true}, whole))
		j := s.open(t, second)
		left, err := j.Release(t.Context())
		require.NoError(t, err)
		require.Empty(t, left)
		require.Equal(t, "2", s.v.now["x"])
		if applies {
			require.NoError(t, s.apply(t, first, whole))
			require.Equal(t, "1", s.v.now["x"])
		}
		require.NoError(t, s.uninstall(t, first))
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// The same holds for an agent that has overridden another and was itself overridden.
func TestPLAN14_TheLastToOverrideIsReleased(t *testing.T) {
	s := newShared(t)
	agents := []tenant{first, {name: "second", wants: "2", force: true}, {name: "third", wants: "3", force: true}}
	for _, a := range agents {
		require.NoError(t, s.apply(t, a, whole))
	}
	_, err := s.open(t, agents[2]).Release(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.uninstall(t, agents[1]))
	require.Equal(t, "1", s.v.now["x"], "the first agent's value")
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An agent that overrides another finds the value already as it wants it. The other had begun
// to change it, and was killed: the value counts as found.
func TestPLAN14_WhatIsThereMayOverride(t *testing.T) {
	s := newShared(t)
	s.v.now["x"] = "2"
	other := tenant{name: "second", wants: "2", force: true}
	require.NoError(t, s.apply(t, first, 1))
	j := s.open(t, other)
	changes, err := j.CheckWishes(step(t, j, "values"), journal.Wish{Entry: other.entry(s), Met: true})
	require.NoError(t, err)
	require.Equal(t, []string{`keep x as it is: agent "first", which wants 1, is overridden`}, changes)
	require.NoError(t, s.apply(t, other, whole))
	require.ErrorIs(t, s.apply(t, first, whole), journal.ErrConflict)
	require.Equal(t, value("2"), entries(t, s.open(t, other))[0].After)
	require.NoError(t, s.uninstall(t, first))
	require.NoError(t, s.uninstall(t, other))
	require.Equal(t, "2", s.v.now["x"], "as it was")
	require.NoDirExists(t, s.dir)
}

// Two agents that agree to override a third are killed before doing so: both know the original.
func TestPLAN14_TwoWereAboutToOverride(t *testing.T) {
	s := newShared(t)
	third := tenant{name: "third", wants: "3"}
	require.NoError(t, s.apply(t, third, whole))
	require.NoError(t, s.apply(t, tenant{name: "first", wants: "1", force: true}, 1))
	require.NoError(t, s.apply(t, second, 1))
	for _, a := range []tenant{third, first, second} {
		require.NoError(t, s.uninstall(t, a))
	}
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An undo is killed after it has restored the original. Another agent that accepts any state
// then sets its own value, and is uninstalled: the first knows that it may undo that value.
func TestPLAN14_OneThatIsContentLeavesAnother(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	*s.v.did = func(string) { panic("killed") }
	require.Panics(t, func() { _ = s.uninstall(t, first) })
	*s.v.did = nil
	j := s.open(t, second)
	e := journal.Entry{Kind: "acme/value", Object: "x", Before: value("0"), After: value("2"), Loose: true}
	require.NoError(t, j.Begin(step(t, j, "values"), e))
	s.v.now["x"] = "2"
	require.NoError(t, j.Complete(step(t, j, "values"), e))
	require.NoError(t, s.uninstall(t, second))
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An agent returns to a value it had left to an agent that accepts any state: it knows the
// value as its own.
func TestPLAN14_OneThatComesBackToWhatItHasMade(t *testing.T) {
	s := newShared(t)
	j := s.open(t, second)
	e := journal.Entry{Kind: "acme/value", Object: "x", Before: value("0"), After: value("2"), Loose: true}
	require.NoError(t, j.Begin(step(t, j, "values"), e))
	s.v.now["x"] = "2"
	require.NoError(t, j.Complete(step(t, j, "values"), e))
	for range 2 {
		require.NoError(t, s.apply(t, first, whole))
		require.NoError(t, s.uninstall(t, first))
		require.Equal(t, "1", s.v.now["x"])
	}
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// Of agents that override each other and are killed, each knows what it found.
func TestPLAN14_KilledWhileOverriding(t *testing.T) {
	a := tenant{name: "first", wants: "1", force: true}
	b := tenant{name: "second", wants: "2", force: true}
	c := tenant{name: "third", wants: "1", force: true}
	type run struct {
		by    tenant
		steps int
	}
	for _, runs := range [][]run{
		{{a, 2}, {b, 2}, {a, 1}},                         // a finds the value as b made it
		{{a, 1}, {b, 2}, {a, whole}, {b, whole}, {c, 1}}, // so does c, which wants the same as a
	} {
		s := newShared(t)
		for _, r := range runs {
			require.NoError(t, s.apply(t, r.by, r.steps))
		}
		for _, last := range []tenant{b, c, a} {
			require.NoError(t, s.uninstall(t, last), "%v", runs)
		}
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// An uninstall is killed once it has restored the value that another agent wants: if the other
// is uninstalled first, it knows the value as that agent's.
func TestPLAN14_KilledWhilePuttingBackWhatAnotherWants(t *testing.T) {
	s := newShared(t)
	other := tenant{name: "second", wants: "2", force: true}
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, other, whole))
	*s.v.did = func(string) { panic("killed") }
	require.Panics(t, func() { _ = s.uninstall(t, other) })
	*s.v.did = nil
	require.Equal(t, "1", s.v.now["x"])
	require.NoError(t, s.uninstall(t, first))
	require.NoError(t, s.uninstall(t, other))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An agent that accepts any state does not hide a conflict with one that does not.
func TestPLAN14_AConflictBehindOneThatIsContent(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	j := s.open(t, second)
	e := second.entry(s)
	e.Loose = true
	require.NoError(t, j.Wish(step(t, j, "values"), journal.Wish{Entry: e, Met: true}))
	third := tenant{name: "third", wants: "2"}
	require.ErrorIs(t, s.apply(t, third, whole), journal.ErrConflict)
	require.Equal(t, "1", s.v.now["x"])
	third.force = true
	require.NoError(t, s.apply(t, third, whole))
	require.NoError(t, s.uninstall(t, third))
	require.Equal(t, "1", s.v.now["x"], "the first agent's value")
	for _, a := range []tenant{first, second} {
		require.NoError(t, s.uninstall(t, a))
	}
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An agent that was overridden and now wants the same value keeps it.
func TestPLAN14_OneThatGivesIn(t *testing.T) {
	s := newShared(t)
	other := tenant{name: "second", wants: "2", force: true}
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, other, whole))
	now := tenant{name: "first", wants: "2"}
	require.NoError(t, s.apply(t, now, whole))
	require.NoError(t, s.uninstall(t, other))
	require.Equal(t, "2", s.v.now["x"])
	require.NoError(t, s.uninstall(t, now))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// After an agent changes a value that another accepts in any state, a foreign change is still
// recognized.
func TestPLAN14_WhatOneOfThemChangedIsTheirs(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		s := newShared(t)
		require.NoError(t, s.apply(t, first, whole))
		j := s.open(t, second)
		e := second.entry(s)
		e.Loose = true
		require.NoError(t, j.Wish(step(t, j, "values"), journal.Wish{Entry: e, Met: true}))
		later := tenant{name: "first", wants: "2"}
		require.NoError(t, s.apply(t, later, whole), "the other agent accepts any state")
		require.NoError(t, s.uninstall(t, later))
		require.Equal(t, "2", s.v.now["x"])
		require.FileExists(t, filepath.Join(s.dir, "first.journal"), "it still records its changes")
		if stranger {
			s.v.now["x"] = "3"
			require.ErrorIs(t, s.uninstall(t, second), journal.ErrChanged)
			require.Equal(t, "3", s.v.now["x"])
			continue
		}
		require.NoError(t, s.uninstall(t, second))
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// A value that an agent has left to another is forgotten once the other is uninstalled.
func TestPLAN14_WhatIsLeftToAnotherIsForgotten(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	j := s.open(t, first)
	s.v.set(t, step(t, j, "more"), j, "y", "1")
	e := second.entry(s)
	e.Loose = true
	b := s.open(t, second)
	require.NoError(t, b.Wish(step(t, b, "values"), journal.Wish{Entry: e, Met: true}))
	require.NoError(t, s.apply(t, tenant{name: "first", wants: "2"}, whole))
	j = s.open(t, first)
	require.NoError(t, j.Revert(step(t, j, "values"))) // a step that is no longer wanted
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "0", s.v.now["x"])
	require.NoError(t, s.uninstall(t, first))
	require.NoDirExists(t, s.dir)
}

// A value left to another agent stays known until that agent is undone, whichever agent is
// uninstalled in between, even if the value ends with the boot.
func TestPLAN14_WhatIsLeftToAnotherOutlivesAThird(t *testing.T) {
	s := newShared(t)
	set := func(name, object, wants string, done bool) {
		j := s.open(t, tenant{name: name})
		defer j.Close()
		e := journal.Entry{Kind: "acme/value", Object: object, Boot: j.Boot(), Loose: true, Before: value(s.v.now[object]), After: value(wants)}
		require.NoError(t, j.Begin(step(t, j, "values"), e))
		if done {
			s.v.now[object] = wants
			require.NoError(t, j.Complete(step(t, j, "values"), e))
		}
	}
	set("first", "x", "1", true)
	set("second", "x", "2", false) // killed before its change; accepts the other's value
	set("third", "y", "1", true)
	for _, name := range []string{"first", "third", "second"} {
		require.NoError(t, s.uninstall(t, tenant{name: name}))
	}
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

func TestPLAN15_WhatIsThereIsAdoptedOnRequest(t *testing.T) {
	for _, adopt := range []bool{false, true} {
		s := newShared(t)
		s.v.now["x"] = "1"
		n := &journal.Node{Dir: s.dir, Agent: "first", Owner: "one", Adopt: adopt, Handlers: []journal.Handler{s.v}}
		j, err := n.Open(t.Context(), nil)
		require.NoError(t, err)
		wish := journal.Wish{Entry: first.entry(s), Met: true, Adoptable: true}
		ctx, leave, err := j.Enter(t.Context(), "apply")
		require.NoError(t, err)
		ctx = n.WithStep(ctx, "values")
		changes, err := j.CheckWishes(ctx, wish)
		require.NoError(t, err)
		require.NoError(t, j.Wish(ctx, wish))
		require.NoError(t, leave())
		if !adopt {
			require.Empty(t, changes)
			require.Empty(t, entries(t, j))
			require.Equal(t, []string{"x is as wanted, and was not made by this agent: undoing leaves it, unless it is adopted"}, n.Advice(ctx))
			continue
		}
		require.Equal(t, []string{"adopt x: it is as wanted, and is undone with the rest"}, changes)
		require.True(t, entries(t, j)[0].Adopted)
		_, err = j.RevertAll(t.Context())
		require.NoError(t, err)
		require.Empty(t, s.v.now["x"])
	}
}

func TestPLAN15_ALaterOwnerAdoptsNothing(t *testing.T) {
	s := newShared(t)
	for _, owner := range []string{"one", "two"} {
		n := &journal.Node{Dir: s.dir, Agent: "first", Owner: owner, Adopt: true, Handlers: []journal.Handler{s.v}}
		j, err := n.Open(t.Context(), nil)
		require.NoError(t, err)
		ctx, leave, err := j.Enter(t.Context(), "apply")
		require.NoError(t, err)
		wish := journal.Wish{Entry: journal.Entry{Kind: "acme/value", Object: owner, After: value("1")}, Met: true, Adoptable: true}
		require.NoError(t, j.Wish(n.WithStep(ctx, "values"), wish))
		require.NoError(t, leave())
		require.Equal(t, []string{"one"}, objects(t, j))
	}
}

// All that two agents can do to one value, in each order: a wanted value is never lost, and
// when both are gone the original is back.
func TestPLAN14_EachOrder(t *testing.T) {
	const depth = 3
	for _, wants := range []string{"1", "2"} {
		for _, force := range []bool{false, true} {
			if testing.Short() && !force {
				continue // shorter sequences are part of longer ones
			}
			everyOrder(t, depth, func(ops []int) {
				s := newShared(t)
				agents := []*tenant{{name: "first", wants: "1"}, {name: "second", wants: wants, force: force}}
				holds := map[string]string{} // the last value each agent was told it has
				for _, op := range ops {
					s.do(t, agents[op%2], op/2, holds)
					for name, value := range holds {
						require.True(t, s.v.now["x"] == value || force && wants == "2", "%s wants %s after %v", name, value, ops)
					}
				}
				for _, a := range agents {
					require.NoError(t, s.uninstall(t, *a), "%v", ops)
				}
				require.Equal(t, "0", s.v.now["x"], "%v %s %v", ops, wants, force)
				require.NoDirExists(t, s.dir, "%v", ops)
			})
		}
	}
}

const operations = 2 * 4

func (s shared) do(t *testing.T, a *tenant, op int, holds map[string]string) {
	switch op {
	case 0: // apply
		if s.apply(t, *a, whole) == nil {
			holds[a.name] = a.wants
		}
	case 1: // killed before its change
		_ = s.apply(t, *a, 1)
	case 2: // killed after its change
		_ = s.apply(t, *a, 2)
	case 3:
		require.NoError(t, s.uninstall(t, *a))
		delete(holds, a.name)
	}
}

func everyOrder(t *testing.T, depth int, f func([]int)) {
	ops := make([]int, depth)
	for {
		f(ops)
		i := 0
		for ; i < depth; i++ {
			if ops[i]++; ops[i] < operations {
				break
			}
			ops[i] = 0
		}
		if i == depth {
			return
		}
	}
}

// A directory stays as long as an agent has an object in it.
func TestPLAN14_ADirectoryOfAnother(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a/b")
	files := journal.Files{Kind: "acme"}
	at := func(agent string) (*journal.Journal, context.Context) {
		j := open(t, filepath.Join(root, "state"), journal.Node{Agent: agent, Handlers: []journal.Handler{files}})
		return j, step(t, j, "files")
	}
	j1, ctx := at("first")
	require.NoError(t, files.MkdirAll(ctx, j1, dir, 0o755))
	j2, ctx := at("second")
	path := filepath.Join(dir, "file")
	require.NoError(t, files.Begin(ctx, j2, path, journal.FileState([]byte("x"), 0o600)))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	require.NoError(t, files.Complete(ctx, j2, path))
	require.Len(t, entries(t, j2), 3, strings.Join(objects(t, j2), " "))
	done, err := j1.RevertAll(t.Context())
	require.NoError(t, err, "%v", done)
	require.FileExists(t, path)
	_, err = j2.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(root, "a"))
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// An agent whose handler records no directories leaves them to the agents that made them.
func TestPLAN14_ADirectoryThatIsNotTheHandlers(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	files := journal.Files{Kind: "acme"}
	picky := journal.Files{Kind: "acme", May: func(path string) error {
		if filepath.Dir(path) != dir {
			return errors.New("it is not in " + dir)
		}
		return nil
	}}
	j1 := open(t, filepath.Join(root, "state"), journal.Node{Agent: "first", Handlers: []journal.Handler{files}})
	require.NoError(t, files.MkdirAll(step(t, j1, "files"), j1, dir, 0o755))
	j2 := open(t, filepath.Join(root, "state"), journal.Node{Agent: "second", Handlers: []journal.Handler{picky}})
	ctx, path := step(t, j2, "files"), filepath.Join(dir, "file")
	require.NoError(t, picky.Begin(ctx, j2, path, journal.FileState([]byte("x"), 0o600)))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	require.NoError(t, picky.Complete(ctx, j2, path))
	_, err := j1.RevertAll(t.Context())
	require.ErrorContains(t, err, "is kept: it holds file")
	for _, j := range []*journal.Journal{j2, j1} {
		done, err := j.RevertAll(t.Context())
		require.NoError(t, err, "%v", done)
	}
	require.NoDirExists(t, dir)
}

// A file is identified by its real path, not by the links that lead there.
func TestPLAN14_OneFileByTwoNames(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "run"), 0o755))
	require.NoError(t, os.Symlink("run", filepath.Join(root, "var-run")))
	files := journal.Files{Kind: "acme"}
	for i, dir := range []string{"run", "var-run"} {
		j := open(t, filepath.Join(root, "state"), journal.Node{Agent: []string{"first", "second"}[i], Handlers: []journal.Handler{files}})
		ctx := step(t, j, "files")
		err := files.Begin(ctx, j, filepath.Join(root, dir, "file"), journal.FileState([]byte(dir), 0o600))
		if i > 0 {
			require.ErrorIs(t, err, journal.ErrConflict)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, "run/file"), []byte(dir), 0o600))
		require.NoError(t, files.Complete(ctx, j, filepath.Join(root, dir, "file")))
	}
}

// The same holds for the directory under another agent's mount.
func TestPLAN14_ADirectoryUnderTheMountOfAnother(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a/b")
	files := journal.Files{Kind: "acme"}
	at := func(agent string) *journal.Journal {
		return open(t, filepath.Join(root, "state"), journal.Node{Agent: agent, Handlers: []journal.Handler{files}})
	}
	first := at("first")
	require.NoError(t, files.MkdirAll(step(t, first, "mount"), first, dir, 0o755))
	second := at("second")
	require.NoError(t, second.Begin(step(t, second, "mount"), journal.Entry{Kind: "acme/mount", Object: dir, After: journal.State{Type: "mount"}}))
	require.Equal(t, []string{filepath.Dir(dir), dir, dir}, objects(t, second))
	_, err := first.RevertAll(t.Context())
	require.NoError(t, err)
	require.DirExists(t, dir)
}

// A reader keeps other agents' journals in memory: beyond a limit, none is read.
func TestPLAN14_SEC6_TheJournalsOfOthersAreBounded(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	for _, agent := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, agent+".journal"), make([]byte, 11<<20), 0o600))
	}
	_, err := (&journal.Node{Dir: s.dir, Agent: "second", NoOwner: true}).Open(t.Context(), nil)
	require.ErrorContains(t, err, "holds journals of other agents of 2")
	require.ErrorContains(t, err, "at most 20971520 are read: uninstall or release those that have gone")
}

// insists is an agent that overrides others.
func insists(wants string) tenant { return tenant{name: "second", wants: wants, force: true} }

// An object that an agent was about to change, and now wants as it is, blocks no other
// agent.
func TestPLAN14_AWishThatWasGivenUp(t *testing.T) {
	for _, firstIsThere := range []bool{true, false} {
		s := newShared(t)
		require.NoError(t, s.apply(t, first, whole))
		if !firstIsThere {
			require.NoError(t, s.apply(t, second, whole))
			require.NoError(t, s.uninstall(t, first))
		}
		require.NoError(t, s.apply(t, insists("2"), 1), "killed before its change")
		j := s.open(t, second)
		changes, err := j.CheckWishes(step(t, j, "values"), journal.Wish{Entry: second.entry(s), Met: true})
		require.NoError(t, err)
		require.Len(t, changes, 1, "it is recorded")
		require.NoError(t, j.Wish(step(t, j, "values"), journal.Wish{Entry: second.entry(s), Met: true}))
		require.NoError(t, s.apply(t, first, whole), "no conflict")
		require.NoError(t, s.uninstall(t, second))
		require.Equal(t, "1", s.v.now["x"])
		require.NoError(t, s.uninstall(t, first))
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// An overridden value is restored even if the agent was killed while giving up its override.
func TestPLAN14_AnOverrideThatWasBeingGivenUp(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, insists("2"), whole))
	require.NoError(t, s.apply(t, second, 1), "killed before its change")
	require.Equal(t, "2", s.v.now["x"])
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "1", s.v.now["x"])
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// Two agents are killed in turn before they change a third one's value: the last one knows the
// original.
func TestPLAN14_KilledOneAfterTheOther(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, insists("2"), whole))
	require.NoError(t, s.apply(t, second, 1))
	require.NoError(t, s.apply(t, first, 1))
	require.NoError(t, s.uninstall(t, second))
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)

	third := tenant{name: "third", wants: "3", force: true}
	require.NoError(t, s.apply(t, insists("2"), 1))
	require.NoError(t, s.apply(t, third, 1))
	require.NoError(t, s.apply(t, insists("2"), 1))
	require.NoError(t, s.uninstall(t, insists("2")), "left to the third agent, which was about to override it")
	require.NoError(t, s.uninstall(t, third))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An uninstall that is killed again and again restores the value that another agent wants.
func TestPLAN14_AnOverrideOfWhichNothingIsCompleted(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	require.NoError(t, s.apply(t, insists("2"), 2), "killed after its change")
	*s.v.did = func(string) { s.v.now["x"] = "2"; panic("killed") } // as if killed just before
	require.Panics(t, func() { _ = s.uninstall(t, second) })
	*s.v.did = nil
	require.NoError(t, s.uninstall(t, second))
	require.Equal(t, "1", s.v.now["x"])
	require.NoError(t, s.uninstall(t, first))
	require.Equal(t, "0", s.v.now["x"])
	require.NoDirExists(t, s.dir)
}

// An undo that has begun to restore the original blocks no other agent, and takes the value
// from none.
func TestPLAN14_WhatIsBeingPutBack(t *testing.T) {
	for _, done := range []bool{false, true} {
		s := newShared(t)
		require.NoError(t, s.apply(t, first, whole))
		j := s.open(t, first)
		require.NoError(t, j.Begin(step(t, j, "values"), journal.Entry{Kind: "acme/value", Object: "x", After: value("0")}))
		if done {
			s.v.now["x"] = "0"
		}
		require.NoError(t, s.apply(t, second, whole))
		require.NoError(t, s.uninstall(t, first))
		require.Equal(t, "1", s.v.now["x"], "the second one wants it")
		require.NoError(t, s.uninstall(t, second))
		require.Equal(t, "0", s.v.now["x"])
		require.NoDirExists(t, s.dir)
	}
}

// Two agents want the same content, and one of them overrides it later: undoing the override
// restores the content for the other.
func TestPLAN14_AFileThatBothWantedIsOverridden(t *testing.T) {
	for _, killed := range []bool{false, true} {
		root := t.TempDir()
		path, files := filepath.Join(root, "file"), journal.Files{Kind: "acme"}
		put := func(agent, content string, force, dies bool) {
			j := open(t, filepath.Join(root, "state"), journal.Node{Agent: agent, Override: force, Handlers: []journal.Handler{files}})
			ctx := step(t, j, "files")
			after := journal.FileState([]byte(content), 0o600)
			wish := journal.Wish{Entry: journal.Entry{Kind: "acme/file", Object: path, After: after}, Met: true}
			if now, err := journal.Snapshot(ctx, path); err == nil && now.Same(after) {
				require.NoError(t, j.Wish(ctx, wish))
				return
			}
			require.NoError(t, files.Begin(ctx, j, path, after))
			if !dies {
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
				require.NoError(t, files.Complete(ctx, j, path))
			}
		}
		remove := func(agent string) {
			_, err := open(t, filepath.Join(root, "state"), journal.Node{Agent: agent, Handlers: []journal.Handler{files}}).RevertAll(t.Context())
			require.NoError(t, err)
		}
		put("first", "one", false, false)
		put("second", "one", false, false)
		if killed {
			put("second", "two", true, true)
		}
		put("second", "two", true, false)
		remove("second")
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "one", string(content))
		remove("first")
		require.NoFileExists(t, path)
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}

// An agent that checks an object in each boot wants it after a reboot too, even if the agent
// that made it does not.
func TestPLAN14_AWishThatLasts(t *testing.T) {
	s := newShared(t)
	at := func(agent, boot string) *journal.Journal {
		return open(t, s.dir, journal.Node{Agent: agent, Boot: boot, Handlers: []journal.Handler{s.v}})
	}
	j := at("first", "one")
	e := first.entry(s)
	e.Boot = "one"
	require.NoError(t, j.Begin(step(t, j, "values"), e))
	s.v.now["x"] = "1"
	require.NoError(t, j.Complete(step(t, j, "values"), e))
	j = at("second", "one")
	require.NoError(t, j.Wish(step(t, j, "values"), journal.Wish{Entry: e, Met: true, Lasting: true}))
	_, err := at("second", "two").RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0", s.v.now["x"])
}
