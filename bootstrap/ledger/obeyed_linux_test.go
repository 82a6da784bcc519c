// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// An administrator may have made the state directory, for all to read.
func TestPLAN6_SEC8_WhatIsRecordedIsForRootAlone(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "state"), 0o755))
	path, book := filepath.Join(root, "f"), opened(t, root)
	require.NoError(t, os.WriteFile(path, make([]byte, 100_000), 0o644))
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
	require.NoError(t, book.SaveReport(t.Context(), []byte("{}")))
	names := namesIn(t, filepath.Join(root, "state"))
	require.Len(t, names, 3)
	for _, name := range names {
		info, err := os.Stat(filepath.Join(root, "state", name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), name)
	}
}

func TestPLAN6_ADamagedCopyIsNotBroughtBack(t *testing.T) {
	for name, damage := range map[string]func(content []byte) []byte{
		"a byte": func(content []byte) []byte { content[50_000]++; return content },
		"longer": func(content []byte) []byte { return append(content, 0) },
		"cut":    func(content []byte) []byte { return content[:50_000] },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path, book := filepath.Join(root, "f"), opened(t, root)
			original := make([]byte, 100_000)
			require.NoError(t, os.WriteFile(path, original, 0o644))
			require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
			copies, err := filepath.Glob(filepath.Join(root, "state", "content.*"))
			require.NoError(t, err)
			require.Len(t, copies, 1)
			require.NoError(t, os.WriteFile(copies[0], damage(make([]byte, len(original))), 0o600))
			require.ErrorContains(t, undo(t, book), "it was changed meanwhile, or is damaged")
			require.True(t, strings.HasSuffix(looksLike(t, path), " ours"))
			require.NoError(t, os.WriteFile(copies[0], original, 0o600))
			require.NoError(t, undo(t, book))
			require.NoDirExists(t, filepath.Join(root, "state"))
		})
	}
}

// An object is undone only if its kind could have made it, since another program may have
// written the ledger; and what is written is read back, since a kernel may say that it took a
// value. Otherwise the object stays recorded.
func TestPLAN6_SEC3_WhatIsNotUndoneStaysRecorded(t *testing.T) {
	refused := errors.New("no agent's")
	for want, spoil := range map[error]func(k *ledger.Kind){
		refused:           func(k *ledger.Kind) { k.Owns = func(string) error { return refused } },
		ledger.ErrRefused: func(k *ledger.Kind) { k.Write = func(context.Context, string, ledger.State) error { return nil } },
	} {
		values := map[string]string{"a": "0"}
		k, wants := kept(values)
		book, whole := opened(t, t.TempDir(), k), *k
		require.NoError(t, apply(t, book, wants.List...))
		spoil(k)
		_, err := book.CheckUndo(t.Context(), nil)
		require.Equal(t, want == refused, errors.Is(err, refused))
		require.ErrorIs(t, undo(t, book), want)
		require.Equal(t, "1", values["a"])
		*k = whole
		require.NoError(t, undo(t, book))
		require.Equal(t, "0", values["a"])
	}
}

func TestPLAN6_ACancelledUndoSaysWhatItDidNotDo(t *testing.T) {
	values := map[string]string{"a": "0", "b": "0"}
	k, wants := kept(values)
	b := wants.List[0]
	b.Object = "b"
	book := opened(t, t.TempDir(), k)
	require.NoError(t, apply(t, book, append(wants.List, b)...))
	ctx, cancel := context.WithCancel(t.Context())
	write := k.Write
	k.Write = func(ctx context.Context, object string, to ledger.State) error {
		cancel()
		return write(ctx, object, to)
	}
	undone, err := book.Undo(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, map[string]string{"a": "1", "b": "0"}, values)
	require.Len(t, undone, 2)
	require.NoError(t, undone[0].Err)
	require.ErrorIs(t, undone[1].Err, context.Canceled)
	k.Write = write
	require.NoError(t, undo(t, book))
	require.Equal(t, map[string]string{"a": "0", "b": "0"}, values)
}

func TestPLAN3_WhatAKilledWriteLeftIsSweptOnEachSide(t *testing.T) {
	for _, namespace := range []string{"", "mnt:[1]"} {
		k, wants := kept(map[string]string{"a": "0"})
		swept, write := 0, k.Write
		k.Sweep = func(context.Context, string) error { swept++; return nil }
		k.Write = func(context.Context, string, ledger.State) error { panic("killed") }
		book := opened(t, t.TempDir(), k)
		if namespace != "" {
			book = book.Local(namespace)
		}
		require.Panics(t, func() { _ = apply(t, book, wants.List...) })
		k.Write = write
		require.NoError(t, undo(t, book))
		require.Equal(t, 1, swept, namespace)
	}
}
