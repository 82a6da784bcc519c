// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/record"
)

func open(t *testing.T, dir string) *record.Book {
	t.Helper()
	b, err := record.Open(dir, "leaf")
	require.NoError(t, err)
	return b
}

func value(v string) record.State { return record.State{Type: "value", Value: v} }

func setting(object, before, after string) record.Entry {
	return record.Entry{Kind: "sysctl", Object: object, Before: value(before), After: value(after)}
}

func TestPLAN6_NothingIsCreatedBeforeTheFirstBegin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	b := open(t, dir)
	require.Empty(t, b.Entries())
	require.NoError(t, b.Undo(context.Background(), nil))
	require.NoDirExists(t, dir)
}

func TestPLAN6_BeginIsOnDiskAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, open(t, dir).Begin(setting("a", "0", "1")))

	e, ok := open(t, dir).Lookup("a")
	require.True(t, ok)
	require.False(t, e.Done)
	require.Equal(t, setting("a", "0", "1"), e)
	info, err := os.Stat(filepath.Join(dir, "leaf.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestPLAN6_PriorStateIsKeptOnce(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"1", "2", "3"} {
		b := open(t, dir)
		require.NoError(t, b.Begin(setting("a", "written by us, not the original", v)))
		if v == "1" {
			require.NoError(t, b.Begin(setting("b", "0", "1")))
		}
		require.NoError(t, b.Complete(setting("a", "", v)))
	}
	e, _ := open(t, dir).Lookup("a")
	require.Equal(t, "written by us, not the original", e.Before.Value)
	require.Equal(t, "3", e.After.Value)
	require.True(t, e.Done)
}

func TestPLAN6_AnotherBootStartsAnew(t *testing.T) {
	b := open(t, t.TempDir())
	first := record.Entry{Kind: "mount", Object: "/m", Before: value("first"), Boot: "boot-1"}
	second := record.Entry{Kind: "mount", Object: "/m", Before: value("second"), Boot: "boot-2"}
	require.NoError(t, b.Begin(first))
	require.NoError(t, b.Begin(second))
	e, _ := b.Lookup("/m")
	require.Equal(t, "second", e.Before.Value)
}

func TestCompleteNeedsABegin(t *testing.T) {
	require.ErrorContains(t, open(t, t.TempDir()).Complete(setting("a", "", "1")), "a was never begun")
}

func TestUndoNewestFirstAndWhatBecomesOfEach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	b := open(t, dir)
	require.NoError(t, b.Begin(setting("fine", "0", "1"), setting("changed", "0", "1"), setting("busy", "0", "1")))

	var order []string
	busy := errors.New("busy")
	err := open(t, dir).Undo(context.Background(), func(_ context.Context, e record.Entry) error {
		order = append(order, e.Object)
		return map[string]error{"changed": record.ErrChanged, "busy": busy}[e.Object]
	})
	require.Equal(t, []string{"busy", "changed", "fine"}, order)
	require.ErrorIs(t, err, busy)
	require.ErrorIs(t, err, record.ErrChanged)

	b = open(t, dir)
	require.Len(t, b.Entries(), 1, "what could not be undone is kept for the next time")
	require.NoError(t, b.Undo(context.Background(), func(context.Context, record.Entry) error { return nil }))
	require.NoDirExists(t, dir, "the last entry takes book and directory with it")
}

func TestUndoStopsWhenCancelled(t *testing.T) {
	b := open(t, t.TempDir())
	require.NoError(t, b.Begin(setting("a", "0", "1"), setting("b", "0", "1")))
	ctx, cancel := context.WithCancel(context.Background())
	err := b.Undo(ctx, func(context.Context, record.Entry) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, b.Entries(), 1)
	require.Equal(t, "a", b.Entries()[0].Object)
}

func TestStateDirectoryOfOthersStays(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	require.NoError(t, b.Begin(setting("a", "0", "1")))
	other, err := record.Open(dir, "other")
	require.NoError(t, err)
	require.NoError(t, other.Begin(setting("a", "0", "1")))
	require.NoError(t, b.Forget("a"))
	require.FileExists(t, filepath.Join(dir, "other.json"))
	require.NoFileExists(t, filepath.Join(dir, "leaf.json"))
}

func TestUnreadableBooksAreErrors(t *testing.T) {
	for name, content := range map[string]string{
		"empty":          "",
		"torn":           `{"schema":1,"entries":[{"kind":"fi`,
		"newer":          `{"schema":2,"entries":[]}`,
		"no schema":      `{"entries":[]}`,
		"unknown field":  `{"schema":1,"entries":[],"extra":1}`,
		"relative path":  `{"schema":1,"entries":[{"kind":"file","object":"etc/passwd","before":{},"after":{},"done":true}]}`,
		"climbing path":  `{"schema":1,"entries":[{"kind":"dir","object":"/a/../etc","before":{},"after":{},"done":true}]}`,
		"climbing blob":  `{"schema":1,"entries":[{"kind":"file","object":"/a","before":{"blob":"../../etc/shadow"},"after":{},"done":true}]}`,
		"no object":      `{"schema":1,"entries":[{"kind":"file","object":"","before":{},"after":{},"done":true}]}`,
		"same one twice": `{"schema":1,"entries":[{"kind":"x","object":"a","before":{},"after":{},"done":true},{"kind":"x","object":"a","before":{},"after":{},"done":true}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "leaf.json")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err := record.Open(dir, "leaf")
			require.ErrorIs(t, err, record.ErrUnreadable)
			require.ErrorContains(t, err, path)
		})
	}
}

func TestStateDirectoryErrorsNameIt(t *testing.T) {
	_, err := record.Open("relative", "leaf")
	require.ErrorContains(t, err, `"relative"`)

	parent := filepath.Join(t.TempDir(), "missing")
	b := open(t, filepath.Join(parent, "state"))
	err = b.Begin(setting("a", "0", "1"))
	require.ErrorContains(t, err, "create "+parent)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = record.Open(file, "leaf")
	require.ErrorContains(t, err, file)
}

func TestOwnerRaisesTheGeneration(t *testing.T) {
	dir := t.TempDir()
	for i, owner := range []string{"pod-a", "pod-a", "pod-b", "pod-a", ""} {
		b := open(t, dir)
		require.NoError(t, b.SetOwner(owner))
		got, generation := open(t, dir).Owner()
		require.Equal(t, owner, got)
		require.Equal(t, []int{1, 1, 2, 3, 4}[i], generation)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"schema":1,"entries":[{"kind":"file","object":"/a","before":{"blob":"b"},"after":{},"done":true}]}`))
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "leaf.json"), content, 0o600))
		b, err := record.Open(dir, "leaf")
		if err != nil {
			require.ErrorIs(t, err, record.ErrUnreadable)
			return
		}
		before := b.Entries()
		require.NoError(t, b.Begin())
		require.Equal(t, before, open(t, dir).Entries())
	})
}

func TestPLAN6_AnAdministratorsStateDirectoryStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o700))
	b := open(t, dir)
	require.NoError(t, b.Begin(setting("a", "0", "1")))
	require.NoError(t, b.Forget("a"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
