// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
)

var _ bootstrap.Adviser = bpffs.Mount{}

var onEach = fsmounttest.OnEach

func TestBPF1_Mode(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		for name, c := range map[string]struct{ mode, want fs.FileMode }{
			"default": {0, 0o700},
			"group":   {0o750, 0o750},
			"all":     {fs.ModeSticky | 0o777, 0o777},
			"unix":    {0o1777, 0o777},
		} {
			path := fsmounttest.Mkdir(t, n, name)
			require.NoError(t, bpffs.Mount{Path: path, Mode: c.mode, Kernel: n.Kernel()}.Apply(t.Context()))
			f, err := fsmount.Or(n.Kernel()).Open(path)
			require.NoError(t, err)
			info, err := f.Stat()
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.Equal(t, fs.ModeDir|fs.ModeSticky|c.want, info.Mode(), name)
		}
	})
}

// A volume of a container is a directory of the host's file system, mounted on
// the path.
func TestBPF1_VolumeOfAContainerIsNotForeign(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "bpf")
		n.Put(path, "tmpfs", "root=/fs/bpf")
		m := record(t, bpffs.Mount{Path: path, Kernel: n.Kernel()})
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"tmpfs", "bpf"}, n.Mounts(path))
		remarks, err := m.mount.Advise(t.Context())
		require.NoError(t, err)
		require.Empty(t, remarks)
		require.NoError(t, m.Undo(t.Context()))
		require.Equal(t, []string{"tmpfs"}, n.Mounts(path))
	})
}

func TestBPF1_BindMountOfABpffsIsOne(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "bpf")
		n.Put(path, "bpf", "root=/agent")
		m := bpffs.Mount{Path: path, Kernel: n.Kernel()}
		require.Empty(t, testledger.Changes(t, m))
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(path))
	})
}

// A directory inside a bpffs has the right type but is not a mount.
func TestBPF6_DirectoryInABpffsIsNoMount(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	top := fsmounttest.Mkdir(t, n, "bpf")
	n.Put(top, "bpf", "")
	path := fsmounttest.Mkdir(t, n, "bpf", "agent")
	m := bpffs.Mount{Path: path}
	require.Equal(t, []string{"mount bpf on " + path}, testledger.Changes(t, m))
	require.NoError(t, m.Apply(t.Context()))
	require.Equal(t, []string{"bpf"}, n.Mounts(path))
	n.Unmount(path)
}

func TestBPF1_SaysWhatItHides(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "bpf")
		fsmounttest.Mkdir(t, n, "bpf", "b")
		fsmounttest.Mkdir(t, n, "bpf", "a")
		require.Equal(t, []string{"mount bpf on " + path + " (hides its present content: a and 1 more)"}, testledger.Changes(t, bpffs.Mount{Path: path, Kernel: n.Kernel()}))
	})
}

func TestBPF2_DoubledMountsAreNamed(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, `with blank, \ and #`)
		n.Put(path, "tmpfs", "")
		n.Put(path, "bpf", "nosuid,nodev,noexec,mode=700")
		n.Put(path, "bpf", "nosuid,nodev,noexec,mode=700")
		m := bpffs.Mount{Path: path, Kernel: n.Kernel()}
		remarks, err := m.Advise(t.Context())
		require.NoError(t, err)
		require.Len(t, remarks, 1)
		require.Regexp(t, `^3 mounts on .*, only the last is visible: tmpfs \(id \d+\), bpf \(id \d+\), bpf \(id \d+\)$`, remarks[0])
		require.Contains(t, remarks[0], path)

		require.Empty(t, testledger.Changes(t, m), "a bpffs is visible")
		n.Put(path, "tmpfs", "")
		_, err = m.Check(t.Context())
		require.ErrorIs(t, err, bpffs.ErrForeign, "the bpffs under it is not in use")
		require.Equal(t, "bpffs.foreign", code.Of(err))
	})
}

func TestBPF4_Fallback(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "bpf")
		fallback := filepath.Join(n.Dir(), "run", "bpffs")
		m := record(t, bpffs.Mount{Path: path, Fallback: fallback, Kernel: n.Kernel()})
		n.Put(path, "tmpfs", "")
		changes, err := m.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, "mount bpf on "+fallback+" ("+path+" holds another file system)", changes[len(changes)-1])
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(fallback))
		require.Equal(t, []string{"tmpfs"}, n.Mounts(path))
		require.NoError(t, m.Undo(t.Context()))
		require.NoDirExists(t, filepath.Dir(fallback))

		n.Put(fsmounttest.Mkdir(t, n, "run", "bpffs"), "tmpfs", "")
		err = m.Apply(t.Context())
		require.ErrorIs(t, err, bpffs.ErrForeign)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, fallback)

		n.Unmount(path)
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(path), "no fallback where the path is free")
	})
}

func TestBPF5_ExistingIsAcceptedAndReported(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "bpf")
		n.Put(path, "bpf", "ro,nosuid,mode=755")
		m := record(t, bpffs.Mount{Path: path, Kernel: n.Kernel()})
		require.Empty(t, testledger.Changes(t, m))
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(path))
		remarks, err := m.mount.Advise(t.Context())
		require.NoError(t, err)
		prefix := "bpffs on " + path
		require.Equal(t, []string{
			prefix + " is mounted with ro", prefix + " is mounted without nodev", prefix + " is mounted without noexec",
			prefix + " has mode 1755, not 1700",
		}, remarks)
		require.NoError(t, m.Undo(t.Context()))
		require.Equal(t, []string{"bpf"}, n.Mounts(path), "the mount of another owner is never removed")
	})
}

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

// recorded is a mount that a step wants.
type recorded struct {
	testledger.Step
	mount *bpffs.Mount
}

func record(t *testing.T, m bpffs.Mount) recorded {
	t.Helper()
	return recorded{testledger.Step{Wanter: &m, Book: testledger.Open(t, testledger.Dir(t))}, &m}
}

// private asserts that m refuses a mount that would end with the container, and
// that the error explains how to make it last.
func private(t *testing.T, m bpffs.Mount, parent string) {
	t.Helper()
	_, err := m.Check(t.Context())
	for _, err := range []error{err, m.Apply(t.Context())} {
		require.ErrorContains(t, err, m.Path)
		require.ErrorContains(t, err, "mountPropagation: Bidirectional")
		require.ErrorContains(t, err, "mount --make-shared "+parent)
		require.Equal(t, "bpffs.not-shared", code.Of(err))
	}
	require.NoDirExists(t, m.Path)
}

func TestBPF3_PrivateIsRefusedWhereAsked(t *testing.T) {
	n := fsmounttest.NewFake(t)
	n.K.Private = true
	m := bpffs.Mount{Path: filepath.Join(n.Dir(), "bpf"), Kernel: n.K, Shared: true}
	private(t, m, "/")

	m.Shared = false
	require.NoError(t, m.Apply(t.Context()))
	m.Shared = true
	require.Empty(t, testledger.Changes(t, m), "the existing mount came from outside")
}
