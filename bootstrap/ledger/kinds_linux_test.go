// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Kinds of one name may differ in what they remember of their wants: each reads its own.
func TestPLAN6_EachWantIsReadByItsOwnKind(t *testing.T) {
	root := t.TempDir()
	book := opened(t, root)
	for _, step := range []string{"one", "two", "three"} {
		path, k := filepath.Join(root, step), ledger.File()
		read := k.Read
		k.Name, k.Space, k.Stage = "theirs", "", nil
		k.Read = func(ctx context.Context, of string) (ledger.State, error) {
			s, err := read(ctx, of)
			if of != path && !s.IsZero() {
				s.Value = "of another want"
			}
			return s, err
		}
		want := ledger.FileWant(path, 0o600, []byte(step))
		want.Kind = k
		_, err := book.Apply(t.Context(), step, ledger.Wants{List: []ledger.Want{want}})
		require.NoError(t, err)
	}
}

// A source that is read slowly is compared until the context ends, and no longer.
func TestSEC6_AComparisonEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	book, content := opened(t, root), bytes.Repeat([]byte("x"), 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	reads := -1
	want := ledger.FileWant(filepath.Join(root, "plugin"), 0o755, nil)
	want.To.SHA256 = ""
	want.To.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			if reads >= 0 {
				reads++
				cancel()
			}
			return copy(p[:min(len(p), 4096)], content), nil
		})), nil
	}
	first := want
	first.To.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	require.NoError(t, apply(t, book, first))
	reads = 0
	_, err := book.Check(ctx, "s", ledger.Wants{List: []ledger.Want{want}})
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, reads, 2)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// The line of a damaged record stays for a person to look at until something is recorded.
func TestPLAN14_WhatChangesNothingKeepsADamagedLine(t *testing.T) {
	root := t.TempDir()
	open := func() *ledger.Book {
		book, err := (&ledger.Ledger{Dir: filepath.Join(root, "state"), Agent: "a", Owner: "pod"}).Open(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, book.Close()) })
		return book
	}
	book := open()
	require.NoError(t, book.Claim(t.Context()))
	for _, name := range []string{"one", "two"} {
		_, err := book.Apply(t.Context(), name, ledger.Wants{List: []ledger.Want{ledger.FileWant(filepath.Join(root, name), 0o600, []byte(name))}})
		require.NoError(t, err)
	}
	file := filepath.Join(root, "state", "ledger")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte(`"mode"`), []byte(`"mOde"`), 1), 0o600))
	needs, err := open().NeedsClaim(t.Context())
	require.NoError(t, err)
	require.False(t, needs)
}

// A killed undoing has brought the original back as another file, which the kind tells from the
// first one: then there is nothing left to undo.
func TestPLAN3_PLAN6_AnOriginalThatIsBackIsNotUndoneAgain(t *testing.T) {
	root, k := t.TempDir(), ledger.File()
	k.Name, k.Same = "told-apart", func(a, b ledger.State) bool { return a.Equal(b) && a.Identity == b.Identity }
	k.Met = func(now ledger.State, w ledger.Want) bool { return now.Equal(w.To) }
	path := filepath.Join(root, "plugin")
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o755))
	book := opened(t, root)
	want := ledger.FileWant(path, 0o755, []byte("ours"))
	want.Kind = k
	require.NoError(t, apply(t, book, want))
	require.NoError(t, os.WriteFile(path+".new", []byte("theirs"), 0o755))
	require.NoError(t, os.Rename(path+".new", path))
	require.NoError(t, undo(t, book))
	require.NoDirExists(t, filepath.Join(root, "state"))
}
