// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// leaf is a Wanter.
type leaf func() (ledger.Wants, error)

func (l leaf) Wants(context.Context) (ledger.Wants, error) { return l() }

// A leaf that is used alone does its work, reads it back, and records nothing.
func TestALeafUsedAlone(t *testing.T) {
	values := map[string]string{}
	k, wants := kept(values)
	want := leaf(func() (ledger.Wants, error) { return wants, nil })
	changes, err := ledger.Check(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, []string{"write value a"}, changes)
	require.Empty(t, values)
	require.NoError(t, ledger.Apply(t.Context(), want))
	require.Equal(t, map[string]string{"a": "1"}, values)
	changes, err = ledger.Check(t.Context(), want)
	require.NoError(t, err)
	require.Empty(t, changes)

	delete(values, "a")
	k.Write = func(context.Context, string, ledger.State) error { return nil }
	require.ErrorIs(t, ledger.Apply(t.Context(), want), ledger.ErrRefused)

	invalid := errors.New("an invalid field")
	broken := leaf(func() (ledger.Wants, error) { return ledger.Wants{}, invalid })
	_, err = ledger.Check(t.Context(), broken)
	require.ErrorIs(t, err, invalid)
	require.ErrorIs(t, ledger.Apply(t.Context(), broken), invalid)
}

// What looks something up accepts that there is no book.
func TestWithoutABook(t *testing.T) {
	book := ledger.From(t.Context())
	require.Nil(t, book)
	agent, dir := book.Mark()
	require.Empty(t, agent+dir)
	require.NoError(t, book.MayApply(t.Context()))
	require.NoError(t, book.Claim(t.Context()))
	require.NoError(t, book.MayUndo(t.Context()))
	require.Nil(t, book.Local("mnt:[1]"))
	status := statusOf(t, book)
	require.Empty(t, status.Records)
	require.NoError(t, book.Close())

	open := openMemory(&ledger.Memory{}, "acme", "boot")
	require.Same(t, open, ledger.From(ledger.With(t.Context(), open)))
	agent, dir = open.Mark()
	require.Equal(t, []string{"acme", "/var/lib/slipway"}, []string{agent, dir})
}

// One cause is said once: for what is to be in a directory, and not for the directory too.
func TestPLAN5_ACauseIsSaidOnce(t *testing.T) {
	dir, file := ledger.Dir(), ledger.File()
	mount := &ledger.Kind{Name: "mount", Space: "path", Read: file.Read}
	deny := func(k *ledger.Kind, cause error) {
		k.Permission = func(context.Context, string) error { return cause }
	}
	root := t.TempDir()
	path := func(name string) string { return filepath.Join(root, name) }
	look := func(of *ledger.Kind, at string) error {
		dirs, err := ledger.DirWants(path("a/b"), 0o755)
		require.NoError(t, err)
		for i := range dirs {
			dirs[i].Kind = dir
		}
		want := ledger.Want{Kind: of, Object: path(at), To: ledger.State{Type: "file"}}
		book := openMemory(&ledger.Memory{}, "acme", "boot")
		look := checked(t, book, "s", ledger.Wants{List: append(dirs, want)})
		return look.Denied
	}
	deny(dir, syscall.EROFS)
	deny(file, fmt.Errorf("its own words: %w", syscall.EROFS))
	require.EqualError(t, look(file, "a/b/f"), path("a/b/f")+": its own words: "+syscall.EROFS.Error())
	require.EqualError(t, look(file, "f"), path("a/b")+": "+syscall.EROFS.Error()+"\n"+path("f")+": its own words: "+syscall.EROFS.Error())
	deny(mount, syscall.EPERM)
	require.EqualError(t, look(mount, "a/b/m"), path("a/b")+": "+syscall.EROFS.Error()+"\n"+path("a/b/m")+": "+syscall.EPERM.Error())
}
