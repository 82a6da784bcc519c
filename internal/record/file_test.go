// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode))
}

func snapshot(t *testing.T, path string) record.State {
	t.Helper()
	s, err := record.Snapshot(path)
	require.NoError(t, err)
	return s
}

// put changes path as a package would.
func put(t *testing.T, b *record.Book, path, content string) {
	t.Helper()
	require.NoError(t, b.BeginFile(path, record.State{Type: "file"}))
	require.NoError(t, durable.WriteFile(path, 0o644, []byte(content)))
	require.NoError(t, b.CompleteFile(path))
}

func undo(b *record.Book) error {
	return b.Undo(context.Background(), func(_ context.Context, e record.Entry) error { return b.UndoFile(e) })
}

func TestPLAN6_UndoBringsBackEachKindOfFile(t *testing.T) {
	big := strings.Repeat("0123456789", 500) // over 4 KiB
	for name, prepare := range map[string]func(t *testing.T, path string){
		"absent":  func(*testing.T, string) {},
		"small":   func(t *testing.T, path string) { write(t, path, "small", 0o640) },
		"big":     func(t *testing.T, path string) { write(t, path, big, 0o755) },
		"setuid":  func(t *testing.T, path string) { write(t, path, big, 0o755|os.ModeSetuid) },
		"empty":   func(t *testing.T, path string) { write(t, path, "", 0o400) },
		"symlink": func(t *testing.T, path string) { require.NoError(t, os.Symlink("else/where", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			path := filepath.Join(dir, "file")
			prepare(t, path)
			before := snapshot(t, path)

			put(t, open(t, state), path, "ours")
			require.False(t, snapshot(t, path).Same(before))
			require.NoError(t, undo(open(t, state)))
			require.Equal(t, before, snapshot(t, path))
			require.NoDirExists(t, state)
			require.NoError(t, undo(open(t, state)), "again")
		})
	}
}

func TestPLAN6_TheOriginalComesBackAfter150Installs(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "plugin")
	original := strings.Repeat("original", 1000)
	write(t, path, original, 0o755)
	for i := range 150 {
		b := open(t, state)
		require.NoError(t, b.SetOwner(fmt.Sprint("pod-", i)))
		put(t, b, path, fmt.Sprint("install ", i))
	}
	require.NoError(t, undo(open(t, state)))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, original, string(content))
	require.NoDirExists(t, state)
}

func TestPLAN6_BigContentLiesBesideTheBook(t *testing.T) {
	for size, beside := range map[int]int{record.MaxInline: 1, record.MaxInline + 1: 2} {
		dir, state := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{'x'}, size), 0o600))
		put(t, open(t, state), path, "ours")
		files, err := os.ReadDir(state)
		require.NoError(t, err)
		require.Len(t, files, beside, "%d bytes", size)
		info, err := os.Stat(filepath.Join(state, "leaf.json"))
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(8<<10))
	}
}

func TestPLAN6_DamagedKeptContentIsNotPutBack(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, strings.Repeat("x", 5000), 0o600)
	put(t, open(t, state), path, "ours")
	blobs, err := filepath.Glob(filepath.Join(state, "leaf.blob.*"))
	require.NoError(t, err)
	require.Len(t, blobs, 1)
	write(t, blobs[0], "damaged", 0o600)

	require.ErrorContains(t, undo(open(t, state)), "damaged")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "ours", string(content))
	require.Len(t, open(t, state).Entries(), 1)
}

func TestPLAN6_ABegunEntryIsDecidedByLooking(t *testing.T) {
	ours := func(t *testing.T, path string) { require.NoError(t, durable.WriteFile(path, 0o644, []byte("ours"))) }
	for name, tc := range map[string]struct {
		change  func(t *testing.T, path string)
		changed bool
	}{
		"killed before the change":  {change: func(*testing.T, string) {}},
		"killed after the change":   {change: ours},
		"somebody came in between":  {change: func(t *testing.T, path string) { write(t, path, "theirs", 0o644) }, changed: true},
		"killed before mode is set": {change: func(t *testing.T, path string) { write(t, path, "ours", 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			path, sample := filepath.Join(dir, "file"), filepath.Join(dir, "sample")
			ours(t, sample)
			require.NoError(t, open(t, state).BeginFile(path, snapshot(t, sample)))
			tc.change(t, path)

			err := undo(open(t, state))
			require.NoDirExists(t, state)
			if tc.changed {
				require.ErrorIs(t, err, record.ErrChanged)
				require.ErrorContains(t, err, path)
				require.FileExists(t, path)
				return
			}
			require.NoError(t, err)
			require.NoFileExists(t, path)
		})
	}
}

func TestPLAN6_KilledBeforeTheSecondInstallChangedAnything(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	put(t, open(t, state), path, "version 1")
	for range 3 { // begun again and again, and never got to it
		require.NoError(t, open(t, state).BeginFile(path, record.State{Type: "file", SHA256: "version 2"}))
	}
	require.NoError(t, undo(open(t, state)))
	require.NoFileExists(t, path)
}

func TestWhatAKilledRunLeftInTheStateDirectoryIsSwept(t *testing.T) {
	state := t.TempDir()
	leftover := filepath.Join(state, ".slipway-DEAD.tmp")
	write(t, leftover, "half a record", 0o600)
	put(t, open(t, state), filepath.Join(t.TempDir(), "file"), "ours")
	require.NoFileExists(t, leftover)
}

func TestPLAN6_WhatOthersChangedStays(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"content":  func(path string) error { return os.WriteFile(path, []byte("edited"), 0o644) },
		"mode":     func(path string) error { return os.Chmod(path, 0o600) },
		"replaced": func(path string) error { os.Remove(path); return os.Symlink("x", path) },
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			path := filepath.Join(t.TempDir(), "file")
			put(t, open(t, state), path, "ours")
			require.NoError(t, change(path))
			theirs := snapshot(t, path)
			require.ErrorIs(t, undo(open(t, state)), record.ErrChanged)
			require.Equal(t, theirs, snapshot(t, path))
		})
	}
}

func TestMkdirAllIsUndoneWhereEmpty(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	deep := filepath.Join(root, "a", "b", "c")
	b := open(t, state)
	require.NoError(t, b.MkdirAll(deep, 0o755))
	require.Len(t, b.Entries(), 3)
	require.NoError(t, b.MkdirAll(deep, 0o700), "there already")
	info, err := os.Stat(deep)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())

	theirs := filepath.Join(root, "a", "b", "theirs")
	write(t, theirs, "", 0o600)
	for range 2 { // it may be empty another time
		err = undo(open(t, state))
		require.EqualError(t, err, "undo "+filepath.Join(root, "a", "b")+": it holds theirs, so it stays")
		require.NoDirExists(t, deep)
		require.FileExists(t, theirs)
	}
	require.NoError(t, os.Remove(theirs))
	require.NoError(t, undo(open(t, state)))
	require.NoDirExists(t, filepath.Join(root, "a"))
	require.NoDirExists(t, state)
}

func TestWouldUndoSaysWhatUndoDoes(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	path := func(name string) string { return filepath.Join(root, name) }
	write(t, path("replaced"), "original", 0o600)
	b := open(t, state)
	require.NoError(t, b.MkdirAll(path("dir/deep"), 0o755))
	require.NoError(t, b.MkdirAll(path("full"), 0o755))
	for _, name := range []string{"dir/deep/file", "replaced", "edited"} {
		put(t, b, path(name), "ours")
	}
	write(t, path("edited"), "theirs", 0o600)
	write(t, path("full/theirs"), "", 0o600)

	going, lines := map[string]bool{}, []string{}
	entries := b.Entries()
	for i := len(entries) - 1; i >= 0; i-- {
		line, err := b.WouldUndo(entries[i], going)
		require.NoError(t, err)
		if line != "" {
			lines = append(lines, line)
		}
	}
	require.Equal(t, []string{
		"restore " + path("replaced"), "remove file " + path("dir/deep/file"),
		"remove directory " + path("dir/deep"), "remove directory " + path("dir"),
	}, lines)
}

func TestPLAN6_WhatWasWrittenBeforeCompletionIsNotTakenForOurs(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	sample := filepath.Join(t.TempDir(), "sample")
	write(t, sample, "ours", 0o644)
	b := open(t, state)
	require.NoError(t, b.BeginFile(path, snapshot(t, sample)))
	write(t, path, "ours", 0o644)
	write(t, path, "theirs", 0o644)
	require.NoError(t, b.CompleteFile(path))
	require.ErrorIs(t, undo(open(t, state)), record.ErrChanged)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
}

func TestMkdirAllOverAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "", 0o600)
	err := open(t, t.TempDir()).MkdirAll(filepath.Join(path, "below"), 0o755)
	require.ErrorContains(t, err, path)
}

func TestMakeLeavesToOthersWhatTheyMade(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "dir"), filepath.Join(t.TempDir(), "state")
	b := open(t, state)
	require.NoError(t, b.Make(record.KindDir, path, record.State{Type: "dir"}, func() (bool, error) {
		return false, os.Mkdir(path, 0o700) // somebody else, in between
	}))
	require.Empty(t, b.Entries())
	require.NoDirExists(t, state)
	require.DirExists(t, path)
}
