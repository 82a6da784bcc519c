// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/mount"
)

// leaf is a package that mounts. What holds for both is tested here.
type leaf struct {
	fstype  string
	foreign error
	kind    *ledger.Kind
	ensure  func(path string) error
	mount   func(path string, k mount.Mounter) action
}

// action is a mount that is used alone, or by a step.
type action interface {
	ledger.Wanter
	Check(ctx context.Context) ([]string, error)
	Apply(ctx context.Context) error
}

var leaves = map[string]leaf{
	"bpffs": {
		"bpf", bpffs.ErrForeign, bpffs.Kind, bpffs.EnsureMounted,
		func(path string, k mount.Mounter) action { return bpffs.Mount{Path: path, Kernel: k} },
	},
	"cgroup": {
		"cgroup2", cgroup.ErrForeign, cgroup.Kind, cgroup.EnsureMounted,
		func(path string, k mount.Mounter) action { return cgroup.Mount{Path: path, Kernel: k} },
	},
}

// onEach runs a test for each leaf on each kernel.
func onEach(t *testing.T, test func(t *testing.T, n fsmounttest.Node, l leaf)) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			fsmounttest.OnEach(t, func(t *testing.T, n fsmounttest.Node) { test(t, n, l) })
		})
	}
}

// recorded is a leaf's mount on a path of the node, and what records it.
type recorded struct {
	testledger.Step
	alone action
	path  string
}

func (l leaf) recorded(t *testing.T, n fsmounttest.Node, elements ...string) recorded {
	t.Helper()
	path := filepath.Join(append([]string{n.Dir()}, elements...)...)
	m := l.mount(path, n.Kernel())
	return recorded{testledger.Step{Wanter: m, Book: testledger.Open(t, testledger.Dir(t))}, m, path}
}

func (l leaf) applied(t *testing.T, n fsmounttest.Node) recorded {
	t.Helper()
	r := l.recorded(t, n, "run", "point")
	require.NoError(t, r.Apply(t.Context()))
	return r
}

func TestBPF1_CG1_MakesDirectoriesAndMounts(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		path := filepath.Join(n.Dir(), "run", "agent", "point")
		m := l.mount(path, n.Kernel())
		require.Equal(t, []string{
			"make directory " + filepath.Join(n.Dir(), "run"),
			"make directory " + filepath.Join(n.Dir(), "run", "agent"),
			"make directory " + path,
			"mount " + l.fstype + " on " + path,
		}, testledger.Changes(t, m))
		require.NoDirExists(t, filepath.Join(n.Dir(), "run"), "Check is pure")

		for range 2 {
			require.NoError(t, m.Apply(t.Context()))
			require.Equal(t, []string{l.fstype}, n.Mounts(path))
			require.Empty(t, testledger.Changes(t, m))
		}
		parent, err := os.Stat(filepath.Dir(path))
		require.NoError(t, err)
		require.Equal(t, fs.ModeDir|0o755, parent.Mode())
		infos, err := fsmount.Mounts(fsmount.Or(n.Kernel()))
		require.NoError(t, err)
		require.Subset(t, mountinfo.On(infos, path)[0].Options, []string{"rw", "nosuid", "nodev", "noexec"})
	})
}

func TestBPF1_CG1_ForeignIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		for _, fstype := range []string{"tmpfs", "sysfs", "proc", "bpf", "cgroup2"} {
			if fstype == l.fstype {
				continue
			}
			m := l.recorded(t, n, fstype)
			n.Put(fsmounttest.Mkdir(t, n, fstype), fstype, "")
			_, err := m.Check(t.Context())
			for _, err := range []error{err, m.Apply(t.Context())} {
				require.ErrorIs(t, err, l.foreign)
				require.ErrorContains(t, err, m.path)
				require.ErrorContains(t, err, fstype)
			}
			require.Equal(t, []string{fstype}, n.Mounts(m.path))
			require.Empty(t, m.Records(t))
		}
	})
}

func TestBPF1_CG2_OnePlaceByAnyName(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		path := fsmounttest.Mkdir(t, n, "fs", "point")
		require.NoError(t, os.Symlink("point", filepath.Join(n.Dir(), "fs", "link")))
		require.NoError(t, os.Symlink(filepath.Join(n.Dir(), "fs"), filepath.Join(n.Dir(), "parent")))
		t.Chdir(n.Dir())
		for _, name := range []string{
			path, path + "/", path + "//", n.Dir() + "/fs/./point", n.Dir() + "/fs/../fs/point", n.Dir() + "/fs/link",
			n.Dir() + "/fs/link/", n.Dir() + "/parent/point", n.Dir() + "/parent/../fs/link", "fs/point", "./fs/link/", "fs/point/../link",
		} {
			m := l.mount(name, n.Kernel())
			require.NoError(t, m.Apply(t.Context()), name)
			require.Equal(t, []string{l.fstype}, n.Mounts(path), name)
			changes, err := m.Check(t.Context())
			require.NoError(t, err, name)
			require.Empty(t, changes, name)
		}
	})
}

func TestBPF1_CG2_AFile(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		file := filepath.Join(n.Dir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Symlink(file, filepath.Join(n.Dir(), "link")))
		for _, name := range []string{"file", "link", "file/below"} {
			m := l.recorded(t, n, name)
			_, err := m.Check(t.Context())
			require.ErrorContains(t, err, file)
			require.ErrorContains(t, m.Apply(t.Context()), file)
			require.Empty(t, m.Records(t))
		}
	})
}

func TestPLAN6_BPF5_RevertTakesBackItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		m := l.applied(t, n)
		changes, err := m.CheckUndo(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{
			"unmount " + l.fstype + " from " + m.path,
			"remove directory " + m.path,
			"remove directory " + filepath.Dir(m.path),
		}, changes)
		for range 2 {
			require.NoError(t, m.Undo(t.Context()))
			require.NoDirExists(t, filepath.Dir(m.path))
			require.Empty(t, m.Records(t))
		}
		changes, err = m.CheckUndo(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
	})
}

func TestPLAN6_BPF5_BusyIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		m := l.applied(t, n)
		release := n.Hold(m.path)
		err := m.Undo(t.Context())
		require.ErrorContains(t, err, "busy")
		require.ErrorContains(t, err, m.path)
		release()
		require.NoError(t, m.Undo(t.Context()))
		require.NoDirExists(t, filepath.Dir(m.path))
	})
}

func TestPLAN6_BPF5_CoveredIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		m := l.applied(t, n)
		n.Put(m.path, "tmpfs", "")
		require.ErrorContains(t, m.Undo(t.Context()), "it is tmpfs now")
		require.Equal(t, []string{l.fstype, "tmpfs"}, n.Mounts(m.path))
		n.Unmount(m.path)
		require.NoError(t, m.Undo(t.Context()))
		require.NoDirExists(t, filepath.Dir(m.path))
	})
}

func TestPLAN6_BPF5_AnothersMountIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node, l leaf) {
		m := l.applied(t, n)
		n.Unmount(m.path)
		n.Put(fsmounttest.Mkdir(t, n, "another"), "tmpfs", "") // takes the identity that older kernels reuse
		n.Put(m.path, l.fstype, "")
		for range 2 {
			err := m.Undo(t.Context())
			require.ErrorIs(t, err, ledger.ErrChanged)
			require.ErrorContains(t, err, m.path)
			require.Equal(t, []string{l.fstype}, n.Mounts(m.path))
		}
		n.Unmount(m.path)
		require.NoError(t, os.Remove(m.path))
		require.NoError(t, m.Undo(t.Context()), "the directory above it is empty now")
		require.Empty(t, m.Records(t))
	})
}
