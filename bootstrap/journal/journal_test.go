// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// values is a handler of kernel-like values, such as a third party would write.
type values struct {
	now   map[string]string
	order *[]string
	did   *func(object string) // called after each restore
}

func newValues() values {
	return values{map[string]string{}, new([]string), new(func(string))}
}

func (values) Kinds() []string      { return []string{"acme/value"} }
func (values) Namespaces() []string { return nil }

func (values) Owns(e journal.Entry) error {
	if e.Object == "forbidden" {
		return errors.New("it is forbidden")
	}
	return nil
}

func (v values) Look(_ context.Context, _ *journal.Pass, e journal.Entry) (journal.Undo, error) {
	now := value(v.now[e.Object])
	switch {
	case now.Same(e.Before):
		return journal.Undo{}, nil
	case !e.MatchesAfter(now):
		return journal.Undo{}, journal.ErrChanged
	}
	return journal.Undo{Change: "set " + e.Object, Run: func(context.Context) error {
		*v.order = append(*v.order, e.Object)
		if e.Object == "stuck" {
			return errors.New("it is stuck")
		}
		v.now[e.Object] = e.Before.Value
		if did := *v.did; did != nil {
			did(e.Object)
		}
		return nil
	}}, nil
}

// set changes a value as an action would.
func (v values) set(t *testing.T, ctx context.Context, j *journal.Journal, object, to string, needs ...string) {
	t.Helper()
	e := journal.Entry{Kind: "acme/value", Object: object, Before: value(v.now[object]), After: value(to), Needs: needs}
	require.NoError(t, j.Begin(ctx, e))
	v.now[object] = to
	require.NoError(t, j.Complete(ctx, e))
}

func value(v string) journal.State { return journal.State{Type: "value", Value: v} }

// open opens n's journal in dir for an agent called "test". Without an owner, none is
// configured.
func open(t *testing.T, dir string, n journal.Node) *journal.Journal {
	t.Helper()
	n.Dir, n.Agent, n.NoOwner = dir, cmp.Or(n.Agent, "agent"), n.Owner == ""
	j, err := n.Open(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func entries(t *testing.T, j *journal.Journal) []journal.Entry {
	t.Helper()
	all, err := j.Entries()
	require.NoError(t, err)
	return all
}

func objects(t *testing.T, j *journal.Journal) (names []string) {
	for _, e := range entries(t, j) {
		names = append(names, e.Object)
	}
	return names
}

func step(t *testing.T, j *journal.Journal, name string) context.Context {
	return journal.With(t.Context(), j.Step(name))
}

func TestPLAN6_BeginIsOnDiskAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir, journal.Node{})
	require.NoError(t, j.Begin(step(t, j, "one"), journal.Entry{Kind: "acme/value", Object: "a", Before: value("0"), After: value("1")}))

	other := open(t, dir, journal.Node{})
	e, known, err := other.Lookup(step(t, other, "one"), "acme/value", "a")
	require.NoError(t, err)
	require.True(t, known)
	require.False(t, e.Done)
	require.Equal(t, value("0"), e.Before)
	require.Equal(t, "one", e.Step)
	require.NotZero(t, e.Time)
	info, err := os.Stat(filepath.Join(dir, "agent.journal"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestPLAN6_WhatOutlastsABootIsUndoneAfterIt(t *testing.T) {
	dir, v := t.TempDir(), newValues()
	v.now["a"], v.now["b"] = "0", "0"
	first := open(t, dir, journal.Node{Boot: "first"})
	ctx := step(t, first, "one")
	for _, object := range []string{"a", "b"} {
		e := journal.Entry{Kind: "acme/value", Object: object, Before: value("0"), After: value("1"), Boot: first.Boot()}
		require.NoError(t, first.Begin(ctx, e))
		v.now[object] = "1"
		require.NoError(t, first.Complete(ctx, e))
	}
	lasting := journal.Entry{Kind: "acme/value", Object: "b"}
	require.Error(t, first.SurvivesReboot(step(t, first, "two"), lasting))
	want := entries(t, first)[1]
	want.Boot = ""
	require.NoError(t, first.SurvivesReboot(ctx, lasting))
	require.Equal(t, want, entries(t, first)[1])

	second := open(t, dir, journal.Node{Boot: "second", Handlers: []journal.Handler{v}})
	require.Error(t, second.SurvivesReboot(step(t, second, "one"), journal.Entry{Kind: "acme/value", Object: "a"}), "a reboot has undone it")
	_, err := second.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "0"}, v.now)
	require.NoError(t, (*journal.Journal)(nil).SurvivesReboot(t.Context(), lasting))
}

func TestPLAN12_NewestFirstAndDependentsBeforeWhatTheyNeed(t *testing.T) {
	v := newValues()
	j := open(t, t.TempDir(), journal.Node{Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "needed by conf", "1")
	v.set(t, step(t, j, "two"), j, "other", "1")
	v.set(t, step(t, j, "one"), j, "conf", "1", "needed by conf", "plugin")
	v.set(t, step(t, j, "one"), j, "plugin", "1") // after the entry that needs it
	would, err := j.CheckRevertAll(t.Context())
	require.NoError(t, err)
	done, err := j.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"conf", "plugin", "other", "needed by conf"}, *v.order)
	for i := range done {
		require.Equal(t, would[i].Change, done[i].Change)
	}
}

func TestPLAN12_WhatStaysKeepsWhatItNeeds(t *testing.T) {
	v := newValues()
	j := open(t, t.TempDir(), journal.Node{Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "needed", "1")
	v.set(t, step(t, j, "one"), j, "changed", "1")
	v.set(t, step(t, j, "one"), j, "stuck", "1", "needed")
	v.now["changed"] = "foreign"
	_, err := j.RevertAll(t.Context())
	require.ErrorContains(t, err, "it is stuck")
	require.ErrorIs(t, err, journal.ErrChanged)
	require.Equal(t, "1", v.now["needed"])
	require.Equal(t, []string{"needed", "changed", "stuck"}, objects(t, j), "failed entries stay recorded")
}

func TestPLAN6_StepsNeverUndoEachOther(t *testing.T) {
	v := newValues()
	j := open(t, t.TempDir(), journal.Node{Handlers: []journal.Handler{v}})
	v.now["a"], v.now["b"] = "original", "original"
	v.set(t, step(t, j, "one"), j, "a", "one's")
	v.set(t, step(t, j, "two"), j, "a", "two's")
	v.set(t, step(t, j, "two"), j, "b", "two's")

	changes, err := j.CheckRevert(step(t, j, "one"))
	require.NoError(t, err)
	require.Empty(t, changes, "it belongs to step two by now")
	require.NoError(t, j.Revert(step(t, j, "one")))
	require.Equal(t, map[string]string{"a": "two's", "b": "two's"}, v.now)
	require.Len(t, entries(t, j), 2)

	require.NoError(t, j.Revert(step(t, j, "two")))
	require.Equal(t, map[string]string{"a": "original", "b": "original"}, v.now, "one's original was left to two")
}

func TestPLAN6_ACancelledUndoSaysWhatItDidNotDo(t *testing.T) {
	v := newValues()
	j := open(t, t.TempDir(), journal.Node{Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "b", "1")
	v.set(t, step(t, j, "one"), j, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	*v.did = func(string) { cancel() }
	done, err := j.RevertAll(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, done[0].Err)
	require.ErrorIs(t, done[1].Err, context.Canceled)
	require.Equal(t, []string{"b"}, objects(t, j))
}

func TestPLAN6_AnUnknownKindStaysAndIsNamed(t *testing.T) {
	dir, v := t.TempDir(), newValues()
	writer := open(t, dir, journal.Node{Owner: "pod-a"})
	_, leave, err := writer.Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, writer.Begin(step(t, writer, "theirs"), journal.Entry{Kind: "other/thing", Object: "x"}))
	require.NoError(t, leave())

	j := open(t, dir, journal.Node{Owner: "pod-a", Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "a", "1")
	_, err = j.RevertAll(t.Context())
	require.ErrorIs(t, err, journal.ErrUnknownKind)
	require.Equal(t, "ledger.unknown-kind", code.Of(err))
	require.ErrorContains(t, err, `other/thing x: recorded by a package that this program does not know (step theirs of owner "pod-a" did)`)
	require.Equal(t, []string{"x"}, objects(t, j))

	_, err = j.ForgetObject(t.Context(), "y")
	require.ErrorContains(t, err, "y is not recorded")
	dropped, err := j.ForgetObject(t.Context(), "x")
	require.NoError(t, err)
	require.Len(t, dropped, 1)
	require.Empty(t, entries(t, j))
}

func TestSEC3_WhatNoActionCanHaveRecordedIsNotObeyed(t *testing.T) {
	v := newValues()
	j := open(t, t.TempDir(), journal.Node{Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "forbidden", "1")
	_, err := j.RevertAll(t.Context())
	require.ErrorContains(t, err, "it is forbidden")
	require.Equal(t, "1", v.now["forbidden"])
}

const (
	aHeader = `{"record":"journal","schema":3,"agent":"agent","id":"x"}`
	anEntry = `{"record":"entry","kind":"a/file","object":"/a","step":"s","before":{},"after":{},"done":true}`
)

// file is a journal file with these records.
func file(records ...string) []byte {
	var all []json.RawMessage
	for _, r := range records {
		all = append(all, json.RawMessage(r))
	}
	return journaltest.Format(all...)
}

func TestUnreadableJournalsAreErrors(t *testing.T) {
	const cut, move = "then cut the file after line ", "then move the file away"
	remedies := map[string]string{
		"empty": move, "a torn header": move, "NUL bytes": move, "JSON": move,
		"a line that is lost": cut + "1,", "a line twice": cut + "2,", "a file twice": cut + "2,",
	}
	entry := func(fields string) []byte {
		return file(aHeader, `{"record":"entry",`+fields+`"after":{},"done":true}`)
	}
	for name, content := range map[string][]byte{
		"empty":               nil,
		"no header":           file(anEntry),
		"a torn header":       file(aHeader)[:40],
		"NUL bytes":           make([]byte, 4096),
		"JSON":                []byte(`{"schema":2,"entries":[]}`),
		"newer":               file(`{"record":"journal","schema":4,"agent":"agent"}`),
		"no schema":           file(`{"record":"journal","agent":"agent"}`),
		"of another agent":    file(`{"record":"journal","schema":3,"agent":"another"}`),
		"of a kind to know":   file(aHeader, `{"record":"lease","object":"/a"}`),
		"critical":            file(aHeader, `{"record":"lease","critical":true}`),
		"no kind of record":   file(aHeader, `{"object":"/a"}`),
		"two headers":         file(aHeader, aHeader),
		"climbing blob":       entry(`"kind":"a/file","object":"/a","step":"s","before":{"blob":"blob.../../etc/shadow"},`),
		"other's blob":        entry(`"kind":"a/file","object":"/a","step":"s","before":{"blob":"agent.journal"},`),
		"no object":           entry(`"kind":"a/file","object":"","step":"s","before":{},`),
		"no step":             entry(`"kind":"a/file","object":"/a","before":{},`),
		"a line that is lost": slices.Concat(file(aHeader), file(aHeader, anEntry, anEntry)[len(file(aHeader, anEntry)):]),
		"a line twice":        slices.Concat(file(aHeader, anEntry), file(aHeader, anEntry)[len(file(aHeader)):]),
		"a file twice":        slices.Concat(file(aHeader, anEntry), file(aHeader, anEntry)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "agent.journal")
			require.NoError(t, os.WriteFile(path, content, 0o600))
			_, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
			require.ErrorIs(t, err, journal.ErrUnreadable)
			require.Equal(t, "ledger.unreadable", code.Of(err))
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, ": record ")
			require.ErrorContains(t, err, cmp.Or(remedies[name], "use the program that wrote it"))
		})
	}
}

func TestPLAN6_AnAdministratorsStateDirectoryStays(t *testing.T) {
	dir, v := filepath.Join(t.TempDir(), "state"), newValues()
	require.NoError(t, os.Mkdir(dir, 0o700))
	j := open(t, dir, journal.Node{Handlers: []journal.Handler{v}})
	v.set(t, step(t, j, "one"), j, "a", "1")
	_, err := j.RevertAll(t.Context())
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func FuzzOpen(f *testing.F) {
	f.Add(file(aHeader, `{"record":"owner","name":"a","generation":1}`, anEntry))
	f.Add(file(aHeader))
	f.Add(append(file(aHeader, anEntry), "120 0123456789abcdef {"...))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.journal"), content, 0o600))
		j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
		if err != nil {
			require.ErrorIs(t, err, journal.ErrUnreadable)
			return
		}
		defer j.Close()
		before := objects(t, j)
		require.NoError(t, j.Begin(step(t, j, "s")))
		require.Equal(t, before, objects(t, j))
	})
}
