// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/mount"
)

var onEach = fsmounttest.OnEach

func TestCG1_ACgroup2OfAnotherRootIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "cgroupv2")
		n.Put(path, "cgroup2", "root=/container")
		m := record(t, cgroup.Mount{Path: path, Kernel: n.Kernel()})
		_, err := m.Check(t.Context())
		require.ErrorIs(t, err, cgroup.ErrNotRoot)
		err = m.Apply(t.Context())
		require.ErrorIs(t, err, cgroup.ErrNotRoot)
		require.Equal(t, "cgroup.not-root", code.Of(err))
		require.ErrorContains(t, err, path)
		require.Equal(t, []string{"cgroup2"}, n.Mounts(path))
		require.Empty(t, m.Records(t))

		m.mount.Repair = true
		require.Equal(t, []string{"mount cgroup2 anew on " + path + " (it shows another cgroup than the host's root)"}, testledger.Changes(t, m))
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(path), "in its place, not on top of it")
		m.mount.Repair = false
		require.Empty(t, testledger.Changes(t, m))

		require.NoError(t, m.Undo(t.Context()))
		require.Empty(t, n.Mounts(path))
	})
}

func TestCG1_RepairOfABusyMount(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		path := fsmounttest.Mkdir(t, n, "cgroupv2")
		n.Put(path, "cgroup2", "root=/container")
		release := n.Hold(path)
		m := record(t, cgroup.Mount{Path: path, Kernel: n.Kernel(), Repair: true})
		err := m.Apply(t.Context())
		require.ErrorContains(t, err, "unmount the cgroup2 with another root: ")
		require.ErrorContains(t, err, "busy")
		require.ErrorContains(t, err, path)
		require.Equal(t, []string{"cgroup2"}, n.Mounts(path))
		require.Empty(t, m.Records(t), "nothing was changed, so nothing is recorded")

		release()
		require.NoError(t, m.Apply(t.Context()))
	})
}

func TestCG1_RepairUnmountsOnlyOtherRoots(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		for name, tc := range map[string]struct{ lower, options, want string }{
			"all of a stack":          {"cgroup2", "root=/one", "cgroup2"},
			"not the host's root":     {"cgroup2", "", "cgroup2"}, // which was not made here
			"not another file system": {"tmpfs", "", "tmpfs cgroup2"},
		} {
			path := fsmounttest.Mkdir(t, n, name)
			m := record(t, cgroup.Mount{Path: path, Kernel: n.Kernel(), Repair: true})
			n.Put(path, tc.lower, tc.options)
			n.Put(path, "cgroup2", "root=/"+strings.ReplaceAll(name, " ", "-"))
			require.NoError(t, m.Apply(t.Context()), name)
			require.Equal(t, tc.want, strings.Join(n.Mounts(path), " "), name)
			if name == "not the host's root" {
				require.NoError(t, m.Undo(t.Context()))
				require.Equal(t, []string{"cgroup2"}, n.Mounts(path))
			}
		}
	})
}

// overtaken is a kernel on which another process comes between the first look and what
// follows.
type overtaken struct {
	*bootstraptest.Kernel
	other func()
}

func (k *overtaken) Stat(path string) (fstype, root, mount string, err error) {
	fstype, root, mount, err = k.Kernel.Stat(path)
	if other := k.other; other != nil {
		k.other = nil
		other()
	}
	return fstype, root, mount, err
}

func TestCG1_RepairKeepsTheMountThatAnotherProcessMadeMeanwhile(t *testing.T) {
	n := fsmounttest.NewFake(t)
	path := fsmounttest.Mkdir(t, n, "cgroupv2")
	n.Put(path, "cgroup2", "root=/container")
	m := cgroup.Mount{Path: path, Kernel: n.K, Repair: true}
	before := ""
	overtaken := &overtaken{n.K, func() {
		require.NoError(t, m.Apply(t.Context()))
		_, _, before, _ = n.K.Stat(path)
	}}
	require.NoError(t, cgroup.Mount{Path: path, Kernel: overtaken, Repair: true}.Apply(t.Context()))
	_, _, after, err := n.K.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestCG1_InsideOfACgroup2(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		top := fsmounttest.Mkdir(t, n, "cgroupv2")
		n.Put(top, "cgroup2", "")
		for _, repair := range []bool{false, true} {
			path := filepath.Join(top, "slipway-test-missing", "deeper")
			err := cgroup.Mount{Path: path, Kernel: n.Kernel(), Repair: repair}.Apply(t.Context())
			require.ErrorIs(t, err, cgroup.ErrNotRoot)
			require.ErrorContains(t, err, path)
			require.NoDirExists(t, filepath.Dir(path), "making a directory there makes a cgroup")
		}
	})
}

// A node may itself run in a cgroup namespace (kind, LXC): there inode 1 is
// not the host's root, and the host's root is not inode 1.
func TestCG1_NestedNode(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		nested := cgroup.Mount{Path: fsmounttest.Mkdir(t, n, "nested"), Kernel: n.Kernel()}
		outer := cgroup.Mount{Path: fsmounttest.Mkdir(t, n, "outer"), Kernel: n.Kernel()}
		require.NoError(t, outer.Apply(t.Context()))
		n.InCgroup("/node", func() {
			require.NoError(t, nested.Apply(t.Context()))
			require.Empty(t, testledger.Changes(t, nested))
			_, err := outer.Check(t.Context())
			require.ErrorIs(t, err, cgroup.ErrNotRoot)
		})
		_, err := nested.Check(t.Context())
		require.ErrorIs(t, err, cgroup.ErrNotRoot)
		require.Empty(t, testledger.Changes(t, outer))
	})
}

func TestTheZeroMountIsTheNodesOwn(t *testing.T) {
	var asked []string
	k := &bootstraptest.Kernel{Fail: func(op, path string) error {
		asked = append(asked, op+" "+path)
		return syscall.EIO
	}}
	_, err := cgroup.Mount{Kernel: k}.Check(t.Context())
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, []string{"statx /sys/fs/cgroup"}, asked)
	wants, err := cgroup.Mount{}.Wants(t.Context())
	require.NoError(t, err)
	place, fstype := wants.List[0].Kind.Place(wants.List[0].Object)
	require.Equal(t, []string{"/sys/fs/cgroup", "cgroup2"}, []string{place, fstype}, "a plan finds them on the host")
	wants, err = cgroup.Mount{Kernel: k}.Wants(t.Context())
	require.NoError(t, err)
	require.Nil(t, wants.List[0].Kind.Place)
}

// recorded is a mount that a step wants.
type recorded struct {
	testledger.Step
	mount *cgroup.Mount
}

func record(t *testing.T, m cgroup.Mount) recorded {
	t.Helper()
	return recorded{testledger.Step{Wanter: &m, Book: testledger.Open(t, testledger.Dir(t))}, &m}
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
		m := record(t, cgroup.Mount{
			Path: fsmounttest.Mkdir(t, n, "cgroupv2"), Kernel: racing{fsmount.Or(n.Kernel()), n},
		})
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.mount.Path))
		require.NoError(t, m.Undo(t.Context()), "it is not ours")
		require.Empty(t, m.Records(t))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.mount.Path))
	})
}
