// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
)

// applied mounts, records it, and returns the recorded Mount.
func applied(t *testing.T, n fsmounttest.Node) recorded {
	t.Helper()
	m := record(t, bpffs.Mount{
		Path: filepath.Join(n.Dir(), "sys", "bpf"), Kernel: n.Kernel(),
	})
	require.NoError(t, m.Apply(t.Context()))
	return m
}

// clean asserts that nothing applied is left on the node.
func clean(t *testing.T, n fsmounttest.Node) {
	t.Helper()
	left, err := os.ReadDir(n.Dir())
	require.NoError(t, err)
	for _, l := range left {
		require.Contains(t, []string{"hierarchy", "aside"}, l.Name())
	}
}

func TestBPF5_PinsKeepIt(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		pins := []string{"tc/globals/cilium_ct", "zz"}
		for _, pin := range pins {
			n.Pin(filepath.Join(m.mount.Path, filepath.FromSlash(pin)))
		}
		for range 2 { // the record stays
			_, err := m.CheckUndo(t.Context())
			require.ErrorContains(t, err, "tc/globals/cilium_ct, zz")
			require.Equal(t, "bpffs.holds-pins", code.Of(err))
			err = m.Undo(t.Context())
			require.ErrorContains(t, err, m.mount.Path)
			require.ErrorContains(t, err, "tc/globals/cilium_ct, zz")
			require.NotErrorIs(t, err, ledger.ErrChanged)
			require.Equal(t, []string{"bpf"}, n.Mounts(m.mount.Path))
		}
		// Unmounted by hand: the rest of the record is undone.
		n.Unmount(m.mount.Path)
		require.NoError(t, m.Undo(t.Context()))
		clean(t, n)
	})
}

func TestBPF5_OfManyPinsTheFirstAreNamed(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		for i := range 12 {
			n.Pin(filepath.Join(m.mount.Path, string(rune('l'-i))))
		}
		err := m.Undo(t.Context())
		require.ErrorContains(t, err, ": a, b, c, d, e, f, g, h, i, j and 2 more (")
		n.Unmount(m.mount.Path)
		require.NoError(t, m.Undo(t.Context()))
	})
}
