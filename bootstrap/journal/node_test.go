// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

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
