// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

func TestPLAN11_ANodeSaysForWhom(t *testing.T) {
	acme, dir := journal.Files{Kind: "acme"}, filepath.Join(t.TempDir(), "state")
	for want, n := range map[string]*journal.Node{
		"":                                      {Dir: dir, Agent: "a", Owner: "pod"},
		"<default directory>":                   {Agent: "a", NoOwner: true},
		"no owner is named":                     {Dir: dir, Agent: "a"},
		`Owner is "pod", and NoOwner`:           {Dir: dir, Agent: "a", Owner: "pod", NoOwner: true},
		"the agent has no name":                 {Dir: dir, Owner: "pod"},
		`agent "A": want at most 63`:            {Dir: dir, Agent: "A", Owner: "pod"},
		`"state" is not an absolute path`:       {Dir: "state", Agent: "a", Owner: "pod"},
		`"/" is not an absolute path below /`:   {Dir: "/", Agent: "a", Owner: "pod"},
		`"/x/.." is not an absolute path below`: {Dir: "/x/..", Agent: "a", Owner: "pod"},
		"handler 2 of 2 is nil":                 {Dir: dir, Agent: "a", Owner: "pod", Handlers: []journal.Handler{acme, nil}},
		"the journal is a nil *Node":            nil,
	} {
		err := n.Validate()
		if want == "" || want[0] == '<' {
			require.NoError(t, err, want)
			continue
		}
		require.ErrorContains(t, err, want)
		_, opened := n.Open(t.Context(), nil)
		require.Equal(t, err, opened, "it is not opened")
	}
	require.NoDirExists(t, dir)
}

type insideKey struct{}

// entering enters a node, marks the context, and logs each entry.
func entering(times *[]string) journal.Enter {
	return func(ctx context.Context, namespaces []string, f func(context.Context) error) error {
		names := strings.Join(slices.Sorted(slices.Values(namespaces)), "+")
		*times = append(*times, names)
		return f(context.WithValue(ctx, insideKey{}, names))
	}
}

func inside(ctx context.Context) string {
	names, _ := ctx.Value(insideKey{}).(string)
	return names
}

// elsewhere is a handler of values in the host's namespaces, which logs where it is called.
type elsewhere struct {
	values
	namespaces []string
	called     *[]string
}

func (e elsewhere) Namespaces() []string { return e.namespaces }

func (e elsewhere) Look(ctx context.Context, p *journal.Pass, entry journal.Entry) (journal.Undo, error) {
	*e.called = append(*e.called, "look "+inside(ctx))
	undo, err := e.values.Look(ctx, p, entry)
	run := undo.Run
	undo.Run = func(ctx context.Context) error {
		*e.called = append(*e.called, "run "+inside(ctx))
		return run(ctx)
	}
	return undo, err
}

func (e elsewhere) Find(ctx context.Context) ([]journal.Marked, error) {
	*e.called = append(*e.called, "find "+inside(ctx))
	return nil, nil
}

// An object in one of the host's namespaces is undone there, even if a later version of its
// handler names other namespaces; an object in the process's own namespaces is not.
func TestPLAN6_AnObjectIsUndoneInItsNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded, later []string
		want            string
	}{
		"on the host":      {[]string{"net", "mnt"}, []string{"net", "mnt"}, "mnt+net"},
		"by a later build": {[]string{"net"}, []string{"mnt"}, "net"},
		"on this side":     {nil, nil, "mnt"}, // the handler's namespaces, on the host
	} {
		t.Run(name, func(t *testing.T) {
			var entered, called []string
			v := newValues()
			h := elsewhere{v, tc.recorded, &called}
			n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{h}}
			j, err := n.Open(t.Context(), entering(&entered))
			require.NoError(t, err)
			defer j.Close()
			require.Equal(t, []string{"mnt"}, entered, "the directory is the host's")
			v.set(t, step(t, j, "one"), j, "a", "1")
			require.Equal(t, tc.recorded, entries(t, j)[0].Namespaces)

			h.namespaces = tc.later
			n.Handlers = []journal.Handler{h}
			again, err := n.Open(t.Context(), entering(&entered))
			require.NoError(t, err)
			defer again.Close()
			_, err = again.RevertAll(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"look " + tc.want, "run " + tc.want}, called)
			require.Empty(t, v.now["a"])
		})
	}
}

func TestPLAN18_OrphansAreLookedForOnTheHost(t *testing.T) {
	var entered, called []string
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true,
		Handlers: []journal.Handler{elsewhere{newValues(), []string{"net"}, &called}}}
	j, err := n.Open(t.Context(), entering(&entered))
	require.NoError(t, err)
	defer j.Close()
	_, err = j.Orphans(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"find net"}, called)
}

// A host that cannot be entered is an error, and nothing is undone here instead.
func TestSEC10_WhatCannotBeEnteredIsNotUndoneHere(t *testing.T) {
	errGone := errors.New("no such host")
	var called []string
	v := newValues()
	h := elsewhere{v, []string{"net"}, &called}
	gone := false
	enter := func(ctx context.Context, _ []string, f func(context.Context) error) error {
		if gone {
			return errGone
		}
		return f(ctx)
	}
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{h}}
	j, err := n.Open(t.Context(), enter)
	require.NoError(t, err)
	defer j.Close()
	v.set(t, step(t, j, "one"), j, "a", "1")
	gone = true
	_, err = j.RevertAll(t.Context())
	require.ErrorIs(t, err, errGone)
	require.Empty(t, called)
	require.Equal(t, []string{"a"}, objects(t, j), "it stays recorded")
	_, err = n.Open(t.Context(), enter)
	require.ErrorIs(t, err, errGone)
}

// A record belongs to the step in the context; outside a step nothing is recorded.
func TestPLAN6_TheContextSaysForWhichStepIsRecorded(t *testing.T) {
	v := newValues()
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{v}}
	require.Nil(t, journal.From(t.Context()))
	require.Nil(t, journal.OnNode(t.Context()))
	ctx, leave, err := n.Enter(t.Context(), "apply", entering(new([]string)))
	require.NoError(t, err)
	require.Nil(t, journal.From(ctx), "a step that records nothing")
	require.NotNil(t, journal.OnNode(ctx), "it can still look up records")

	one, two := n.WithStep(ctx, "one"), n.WithStep(ctx, "two")
	require.False(t, n.Noted(one))
	v.set(t, one, journal.From(one), "a", "1")
	require.True(t, n.Noted(one))
	require.False(t, n.Noted(two), "it is another step's")
	require.False(t, n.Noted(ctx))
	require.Equal(t, "one", entries(t, journal.OnNode(ctx))[0].Step)

	_, known, err := journal.From(two).Lookup(two, "acme/value", "a")
	require.NoError(t, err)
	require.False(t, known)
	require.False(t, n.Noted(two))
	again := n.WithStep(ctx, "one")
	_, known, err = journal.From(again).Lookup(again, "acme/value", "a")
	require.NoError(t, err)
	require.True(t, known)
	require.True(t, n.Noted(again), "a later run finds the note")
	require.NoError(t, leave())
}

// If the journal's directory appears later, the journal is opened then.
func TestPLAN6_ANodeIsOpenedOnceThereIsAPlaceForIt(t *testing.T) {
	var entered []string
	parent := filepath.Join(t.TempDir(), "later")
	n := &journal.Node{Dir: filepath.Join(parent, "state"), Agent: "agent", Owner: "pod"}
	require.Empty(t, entered, "nothing is read before a plan runs")
	_, _, err := n.Enter(t.Context(), "check", entering(&entered))
	require.ErrorContains(t, err, "create "+parent, "an apply could record nothing")
	require.NoError(t, os.Mkdir(parent, 0o755))
	for range 2 {
		ctx, leave, err := n.Enter(t.Context(), "apply", entering(&entered))
		require.NoError(t, err)
		agent, owner, generation := n.Identity(ctx)
		require.Equal(t, []string{"agent", "pod"}, []string{agent, owner})
		require.Equal(t, 1, generation)
		require.NoError(t, leave())
	}
	require.Equal(t, []string{"mnt", "mnt"}, entered, "once without the directory, and once with it")
}

// RevertAll reports the result of each entry; its error covers only other failures.
func TestPLAN12_RevertAllTellsOfEachEntry(t *testing.T) {
	v := newValues()
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{v}}
	ctx, leave, err := n.Enter(t.Context(), "apply", entering(new([]string)))
	require.NoError(t, err)
	one, two := n.WithStep(ctx, "one"), n.WithStep(ctx, "two")
	v.set(t, one, journal.From(one), "a", "1")
	v.set(t, two, journal.From(two), "stuck", "1")
	require.ErrorContains(t, n.RevertAll(ctx, false, nil), "in use by this very apply")
	require.NoError(t, leave())
	require.ErrorIs(t, n.RevertAll(t.Context(), false, nil), errors.ErrUnsupported, "it was not entered")

	for _, tc := range []struct {
		op   string
		want []string
	}{
		{"check-revert", []string{"two: set stuck <nil>", "one: set a <nil>"}},
		{"revert", []string{"two:  it is stuck", "one: set a <nil>"}},
	} {
		ctx, leave, err := n.Enter(t.Context(), tc.op, entering(new([]string)))
		require.NoError(t, err)
		var told []string
		require.NoError(t, n.RevertAll(ctx, tc.op == "check-revert", func(step, change string, err error) {
			text := "<nil>"
			if err != nil {
				text = err.Error()
			}
			told = append(told, step+": "+change+" "+text)
		}))
		require.Equal(t, tc.want, told, tc.op)
		require.NoError(t, leave())
	}
}

// In a plan, nothing is recorded that no handler could undo.
func TestPLAN19_WhatNoHandlerUndoesIsNotRecorded(t *testing.T) {
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{newValues()}}
	ctx, leave, err := n.Enter(t.Context(), "apply", entering(new([]string)))
	require.NoError(t, err)
	ctx = n.WithStep(ctx, "one")
	require.ErrorContains(t, journal.From(ctx).Begin(ctx, journal.Entry{Kind: "other/file", Object: "/x"}), "no handler of the journal undoes this kind")
	require.NoError(t, leave())
}

// A file of an action that was killed before completion is recognized by its content.
func TestPLAN6_AFileIsToldByItsContent(t *testing.T) {
	content := []byte("ours")
	whole := journal.FileState(content, 0o644)
	require.EqualValues(t, len(content), whole.Size)
	for name, after := range map[string]journal.State{"whole": whole, "without its size": {Type: "file", SHA256: whole.SHA256}} {
		dir := t.TempDir()
		path, files := filepath.Join(dir, "file"), journal.Files{Kind: "acme"}
		n := &journal.Node{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{files}}
		j, err := n.Open(t.Context(), nil)
		require.NoError(t, err)
		defer j.Close()
		require.NoError(t, files.Begin(t.Context(), j.Step("file"), path, after), name)
		require.NoError(t, os.WriteFile(path, content, 0o644))
		_, err = j.RevertAll(t.Context())
		require.NoError(t, err, name)
		require.NoFileExists(t, path, name)
	}
}
