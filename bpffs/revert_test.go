// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// applied mounts, records it, and returns the recorded Mount.
func applied(t *testing.T, n fsmounttest.Node) recorded {
	t.Helper()
	m := recorded{bpffs.Mount{
		Path: filepath.Join(n.Dir(), "sys", "bpf"), Kernel: n.Kernel(),
	}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
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

func TestBPF5_RevertTakesBackItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		changes, err := m.CheckRevert(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{
			"unmount bpf from " + m.Path,
			"remove directory " + m.Path + "",
			"remove directory " + filepath.Dir(m.Path) + "",
		}, changes)
		m.Path = "" // the record knows
		require.NoError(t, m.Revert(t.Context()))
		clean(t, n)
		changes, err = m.CheckRevert(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
		require.NoError(t, m.Revert(t.Context()))
	})
}

func TestBPF5_PinsKeepIt(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		pins := []string{"tc/globals/cilium_ct", "zz"}
		for _, pin := range pins {
			n.Pin(filepath.Join(m.Path, filepath.FromSlash(pin)))
		}
		for range 2 { // the record stays
			_, err := m.CheckRevert(t.Context())
			require.ErrorContains(t, err, "tc/globals/cilium_ct, zz")
			require.Equal(t, "bpffs.holds-pins", code.Of(err))
			err = m.Revert(t.Context())
			require.ErrorContains(t, err, m.Path)
			require.ErrorContains(t, err, "tc/globals/cilium_ct, zz")
			require.NotErrorIs(t, err, journal.ErrChanged)
			require.Equal(t, []string{"bpf"}, n.Mounts(m.Path))
		}
		// Unmounted by hand: the rest of the record is undone.
		n.Unmount(m.Path)
		require.NoError(t, m.Revert(t.Context()))
		clean(t, n)
	})
}

func TestBPF5_BusyIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		release := n.Hold(m.Path)
		err := m.Revert(t.Context())
		require.ErrorContains(t, err, "busy")
		require.ErrorContains(t, err, m.Path)
		release()
		require.NoError(t, m.Revert(t.Context()))
		clean(t, n)
	})
}

func TestBPF5_CoveredIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		n.Put(m.Path, "tmpfs", "")
		err := m.Revert(t.Context())
		require.ErrorContains(t, err, "tmpfs is mounted over it")
		require.Equal(t, []string{"bpf", "tmpfs"}, n.Mounts(m.Path))
		n.Unmount(m.Path)
		require.NoError(t, m.Revert(t.Context()))
		clean(t, n)
	})
}

func TestBPF5_AnothersMountIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		n.Unmount(m.Path)
		n.Put(m.Path, "bpf", "")
		for range 2 {
			err := m.Revert(t.Context())
			require.ErrorIs(t, err, journal.ErrChanged)
			require.ErrorContains(t, err, m.Path)
			require.Equal(t, []string{"bpf"}, n.Mounts(m.Path))
		}
		n.Unmount(m.Path)
		require.NoError(t, os.Remove(m.Path))
		require.NoError(t, m.Revert(t.Context()), "the directory above it is empty now")
		require.NoDirExists(t, m.Journal.Dir())
	})
}

func TestBPF5_AfterAReboot(t *testing.T) {
	n := fsmounttest.NewFake(t)
	m := applied(t, n)
	n.K.Reboot()
	journaltest.Reboot(t, m.Journal.Dir(), "bpffs/mount")
	n.Put(m.Path, "bpf", "") // a boot assigns new identities
	require.NoError(t, m.Apply(t.Context()))
	require.ErrorIs(t, m.Revert(t.Context()), journal.ErrChanged, "the directory is another owner's mount now")
	require.Equal(t, []string{"bpf"}, n.Mounts(m.Path))
}

func TestBPF5_AppliedAgainAfterAReboot(t *testing.T) {
	n := fsmounttest.NewFake(t)
	m := applied(t, n)
	n.K.Reboot()
	journaltest.Reboot(t, m.Journal.Dir(), "bpffs/mount")
	require.NoError(t, m.Apply(t.Context()))
	require.Equal(t, []string{"bpf"}, n.K.Mounts(m.Path))
	require.NoError(t, m.Revert(t.Context()))
	clean(t, n)
}

func TestBPF5_NothingRecorded(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := recorded{Mount: bpffs.Mount{Path: fsmounttest.Mkdir(t, n, "bpf"), Kernel: n.Kernel()}}
		require.NoError(t, m.Apply(t.Context()))
		require.ErrorIs(t, m.Revert(t.Context()), errors.ErrUnsupported)
		_, err := m.CheckRevert(t.Context())
		require.ErrorIs(t, err, errors.ErrUnsupported)
		m.Journal = journaltest.Open(t, filepath.Join(n.Dir(), "state"))
		require.NoError(t, m.Revert(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(m.Path))
	})
}

func TestUnchangedApplyWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		before, err := os.Stat(filepath.Join(m.Journal.Dir(), "agent.journal"))
		require.NoError(t, err)
		require.NoError(t, m.Apply(t.Context()))
		after, err := os.Stat(filepath.Join(m.Journal.Dir(), "agent.journal"))
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
		require.Equal(t, before.ModTime(), after.ModTime())
	})
}

// errKilled simulates a SIGKILL: it ends Apply without any cleanup.
var errKilled = errors.New("killed")

// dying is a kernel on which the process dies at one point of Mount.
type dying struct {
	fsmount.Kernel
	at string
}

func (k dying) Mount(path, fstype, options string, before func(root string) error) error {
	die := func(at string) {
		if at == k.at {
			panic(errKilled)
		}
	}
	err := k.Kernel.Mount(path, fstype, options, func(root string) error {
		die("made")
		err := before(root)
		die("begun")
		return err
	})
	die("attached")
	return err
}

func applyAndDie(t *testing.T, m recorded, at string) {
	t.Helper()
	m.Kernel = dying{fsmount.Or(m.Kernel), at}
	defer func() { require.Equal(t, errKilled, recover()) }()
	_ = m.Apply(context.Background())
	t.Error("it did not reach " + at)
}

func TestPLAN3_KilledAndRunAgain(t *testing.T) {
	for _, at := range []string{"made", "begun", "attached"} {
		t.Run(at, func(t *testing.T) {
			onEach(t, func(t *testing.T, n fsmounttest.Node) {
				m := recorded{bpffs.Mount{Path: filepath.Join(n.Dir(), "a", "b"), Kernel: n.Kernel()}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
				applyAndDie(t, m, at)
				require.NoError(t, m.Apply(t.Context()))
				require.Equal(t, []string{"bpf"}, n.Mounts(m.Path))
				require.NoError(t, m.Revert(t.Context()))
				clean(t, n)
			})
		})
	}
}

func TestPLAN6_KilledAndReverted(t *testing.T) {
	for _, at := range []string{"made", "begun", "attached"} {
		t.Run(at, func(t *testing.T) {
			onEach(t, func(t *testing.T, n fsmounttest.Node) {
				m := recorded{bpffs.Mount{Path: filepath.Join(n.Dir(), "a", "b"), Kernel: n.Kernel()}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
				applyAndDie(t, m, at)
				require.NoError(t, m.Revert(t.Context()))
				clean(t, n)
			})
		})
	}
}

func TestAnUnreadableJournalStopsApply(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := recorded{bpffs.Mount{Path: filepath.Join(n.Dir(), "bpf"), Kernel: n.Kernel()}, journaltest.Open(t, fsmounttest.Mkdir(t, n, "state"))}
		require.NoError(t, os.Chmod(m.Journal.Dir(), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(m.Journal.Dir(), "agent.journal"), []byte("{"), 0o600))
		require.ErrorIs(t, m.Apply(t.Context()), journal.ErrUnreadable)
		require.ErrorIs(t, m.Revert(t.Context()), journal.ErrUnreadable)
		require.NoDirExists(t, m.Path)
	})
}

func TestBPF5_OfManyPinsTheFirstAreNamed(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		for i := range 12 {
			n.Pin(filepath.Join(m.Path, string(rune('l'-i))))
		}
		err := m.Revert(t.Context())
		require.ErrorContains(t, err, ": a, b, c, d, e, f, g, h, i, j and 2 more (")
		n.Unmount(m.Path)
		require.NoError(t, m.Revert(t.Context()))
	})
}
