// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// kindOn is the kind of the leaf's mounts on the node's kernel.
func (l leaf) kindOn(t *testing.T, n fsmounttest.Node) *ledger.Kind {
	t.Helper()
	book := testledger.Open(t, testledger.Dir(t))
	wants, err := l.mount(n.Dir(), n.Kernel()).Wants(ledger.With(t.Context(), book))
	require.NoError(t, err)
	return wants.List[len(wants.List)-1].Kind
}

// Whatever a ledger says.
func TestSEC3_WhatWasNotMadeHereIsNotUnmounted(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		k := l.kindOn(t, n)
		path := fsmounttest.Mkdir(t, n, "point")
		n.Put(path, l.fstype, "")
		require.ErrorIs(t, k.Write(t.Context(), path, ledger.State{}), syscall.EINVAL)
		require.Equal(t, []string{l.fstype}, n.Mounts(path))
		for path, want := range map[string]string{
			"/run/acme/bpf": "", "/": "absolute", "run/acme": "absolute", "/run/acme/..": "clean",
		} {
			if want == "" {
				require.NoError(t, k.Owns(path))
			} else {
				require.ErrorContains(t, k.Owns(path), want, path)
			}
		}
	})
}

// What the state directory has lost is found by its source.
func TestPLAN6_PLAN20_ASourceSaysWhoMadeTheMount(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		dir := testledger.Dir(t)
		m := l.mount(filepath.Join(n.Dir(), "run", "point"), n.Kernel())
		first := testledger.Step{Wanter: m, Book: testledger.OpenFor(t, dir, "a-b")}
		require.NoError(t, first.Apply(t.Context()))
		require.Empty(t, orphans(t, first, l.kindOn(t, n)))
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(n.Dir(), "run", "point")
		require.Equal(t, []ledger.Marked{{
			Kind: l.kind.Name, Object: path, Agent: "a-b", Dir: dir, Remove: "umount " + path,
		}}, orphans(t, first, l.kindOn(t, n)))
		n.Unmount(path)
		n.Put(path, l.fstype, "")
		require.Empty(t, orphans(t, first, l.kindOn(t, n)))
	})
}

func orphans(t *testing.T, s testledger.Step, k *ledger.Kind) []ledger.Marked {
	t.Helper()
	s.Book.Learn(k)
	found, err := s.Book.Orphans(t.Context())
	require.NoError(t, err)
	return found
}

func TestPLAN15_NoMountIsAdopted(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		path := fsmounttest.Mkdir(t, n, "point")
		n.Put(path, l.fstype, "")
		book, err := (&ledger.Ledger{Dir: testledger.Dir(t), Agent: "agent", NoOwner: true, Adopt: true}).Open(t.Context())
		require.NoError(t, err)
		defer book.Close()
		m := testledger.Step{Wanter: l.mount(path, n.Kernel()), Book: book}
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{path}, m.Records(t))
		require.NoError(t, m.Undo(t.Context()))
		require.Equal(t, []string{l.fstype}, n.Mounts(path))
	})
}
