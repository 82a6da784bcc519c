// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/mount"
)

func applied(t *testing.T, n fsmounttest.Node) recorded {
	t.Helper()
	m := recorded{cgroup.Mount{
		Path: filepath.Join(n.Dir(), "run", "cgroupv2"), Kernel: n.Kernel(),
	}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
	require.NoError(t, m.Apply(t.Context()))
	return m
}

func TestPLAN6_RevertTakesBackItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		changes, err := m.CheckRevert(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{
			"unmount cgroup2 from " + m.Path,
			"remove directory " + m.Path + "",
			"remove directory " + filepath.Dir(m.Path) + "",
		}, changes)
		require.NoError(t, recorded{cgroup.Mount{Kernel: m.Kernel}, m.Journal}.Revert(t.Context()), "the record knows the path")
		require.NoDirExists(t, filepath.Dir(m.Path))
		require.NoDirExists(t, m.Journal.Dir())
	})
}

func TestPLAN6_MountedAnewByOthers(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		n.Unmount(m.Path)
		require.NoError(t, os.Mkdir(m.Path+"-aside", 0o755)) // takes the identity that older kernels reuse
		n.Put(m.Path+"-aside", "tmpfs", "")
		n.Put(m.Path, "cgroup2", "")
		for range 2 {
			require.ErrorIs(t, m.Revert(t.Context()), journal.ErrChanged)
			require.Equal(t, []string{"cgroup2"}, n.Mounts(m.Path))
		}
	})
}

// A repair that fails keeps the record of what Apply mounted before.
func TestPLAN6_FailedRepairForgetsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := recorded{cgroup.Mount{
			Path: filepath.Join(n.Dir(), "cgroupv2"), Kernel: n.Kernel(), Repair: true,
		}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
		n.InCgroup("/container", func() { require.NoError(t, m.Apply(t.Context())) })
		release := n.Hold(m.Path)
		require.ErrorContains(t, m.Apply(t.Context()), "busy")
		release()
		require.NoError(t, m.Revert(t.Context()))
		require.Empty(t, n.Mounts(m.Path))
		require.NoDirExists(t, m.Journal.Dir())
	})
}

// racing is a kernel on which another process mounts just before.
type racing struct {
	mount.Mounter
	n fsmounttest.Node
}

func (k racing) Mount(source, target, fstype, options string) error {
	k.n.Put(target, fstype, "")
	return k.Mounter.Mount(source, target, fstype, options)
}

func TestCG2_AnotherProcessIsFirst(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := recorded{cgroup.Mount{
			Path: fsmounttest.Mkdir(t, n, "cgroupv2"), Kernel: racing{fsmount.Or(n.Kernel()), n},
		}, journaltest.Open(t, filepath.Join(n.Dir(), "state"))}
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.Path))
		require.NoDirExists(t, m.Journal.Dir(), "it is not ours")
		require.NoError(t, m.Revert(t.Context()))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.Path))
	})
}

func TestPLAN6_BusyIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := applied(t, n)
		release := n.Hold(m.Path)
		err := m.Revert(t.Context())
		require.ErrorContains(t, err, "busy")
		require.ErrorContains(t, err, m.Path)
		release()
		require.NoError(t, m.Revert(t.Context()))
		require.NoDirExists(t, filepath.Dir(m.Path))
	})
}
