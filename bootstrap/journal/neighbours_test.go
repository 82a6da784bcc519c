// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	if e, known, err := j.Lookup(ctx, "acme/value", "x"); err == nil && known && !e.Done && e.After.Same(value(s.v.now["x"])) {
		require.NoError(t, j.Complete(ctx, e), "of an earlier version that was killed")
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

// walk is a random sequence of what agents do to one value.
type walk struct {
	shared
	*rand.Rand
	agents   []tenant
	original string            // comes back in the end: what was there before, or what a released agent has left
	holds    map[string]string // the values that agents were told they have
	done     []string
	left     bool // something was left for good
	versions bool // agents want another value later; such an agent never accepts any
}

// next has one agent do something.
func (w *walk) next(t *testing.T) {
	n := w.IntN(len(w.agents))
	if w.versions && w.IntN(4) == 0 {
		w.agents[n].wants = []string{"1", "2"}[w.IntN(2)]
	}
	a := w.agents[n]
	what := []string{"apply", "apply", "begin", "change", "accept", "find", "uninstall", "fail", "release"}[w.IntN(9)]
	if w.versions && what == "accept" {
		what = "apply"
	}
	w.done = append(w.done, fmt.Sprintf("%s %s %s (%t)", a.name, what, a.wants, a.force))
	switch what {
	case "apply":
		w.told(a, w.apply(t, a, whole), true)
	case "begin", "change": // killed before the change, or after it
		w.told(a, w.apply(t, a, map[string]int{"begin": 1, "change": 2}[what]), false)
	case "accept":
		w.told(a, w.accept(t, a), false)
	case "find":
		if w.v.now["x"] == a.wants {
			w.in(t, a, "apply", false, func(ctx context.Context, j *journal.Journal, _ *journal.Node) {
				changes, err := j.CheckWishes(ctx, a.claim(w.shared))
				if len(changes) > 0 {
					err = j.Wish(ctx, a.claim(w.shared))
				}
				w.told(a, err, true)
			})
		}
	case "uninstall", "fail":
		delete(w.holds, a.name)
		if what == "fail" { // killed once the value is restored
			*w.v.did = func(string) { panic("killed") }
		}
		func() {
			defer func() { _ = recover() }()
			require.NoError(t, w.uninstall(t, a), "%v", w.done)
		}()
		*w.v.did = nil
	case "release":
		delete(w.holds, a.name)
		left, err := w.open(t, a).Release(t.Context())
		require.NoError(t, err)
		if len(left) > 0 {
			w.original, w.left = w.v.now["x"], true
		}
	}
	for name, value := range w.holds {
		require.Equal(t, value, w.v.now["x"], "%s wants it after %v", name, w.done)
	}
}

// told notes what an agent may rely on after an apply, and which other agents no longer may.
func (w *walk) told(a tenant, err error, whole bool) {
	maps.DeleteFunc(w.holds, func(name, value string) bool { return err == nil && (name == a.name || value != a.wants) })
	if err == nil && whole {
		w.holds[a.name] = a.wants
	}
}

// accept is what an agent does to which any value is right.
func (s shared) accept(t *testing.T, a tenant) error {
	j := s.open(t, a)
	defer j.Close()
	e := a.entry(s)
	e.Loose = true
	return j.Wish(step(t, j, "values"), journal.Wish{Entry: e, Met: true})
}

// Agents of a node apply, override each other, are killed, accept what they find, are released
// and uninstalled, in random order: what an agent was told it has is never lost, and when all
// are gone the original is back.
func TestPLAN14_Walks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		w := &walk{shared: newShared(t), Rand: rand.New(rand.NewPCG(1, seed)), original: "0", holds: map[string]string{}, versions: seed%2 == 0}
		for _, name := range []string{"first", "second", "third"} {
			w.agents = append(w.agents, tenant{name, []string{"1", "2"}[w.IntN(2)], w.IntN(3) > 0})
		}
		for range 3 + w.IntN(8) {
			w.next(t)
		}
		for _, n := range w.Perm(len(w.agents)) {
			require.NoError(t, w.uninstall(t, w.agents[n]), "%v", w.done)
		}
		require.Equal(t, w.original, w.v.now["x"], "%v", w.done)
		if !w.left {
			require.NoDirExists(t, w.dir, "%v", w.done)
		}
	}
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
