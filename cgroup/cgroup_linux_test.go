// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// unified and hybrid lay cgroups out in a directory as systemd does in
// /sys/fs/cgroup.
func unified(t testing.TB, n fsmounttest.Node) string {
	t.Helper()
	path := fsmounttest.Mkdir(t, n, "unified-node")
	n.Put(path, "cgroup2", "")
	return path
}

var hierarchies atomic.Int64

func v1(t testing.TB, n fsmounttest.Node) string {
	t.Helper()
	path := fsmounttest.Mkdir(t, n, "v1-node")
	n.Put(path, "tmpfs", "mode=755")
	hierarchy := fsmounttest.Mkdir(t, n, "v1-node", "systemd")
	// A new hierarchy is visible to every process of the machine, so use an
	// existing one if possible.
	infos, err := mountinfo.Read()
	require.NoError(t, err)
	for _, i := range infos {
		if i.FSType == "cgroup" {
			require.NoError(t, unix.Mount(i.Point, hierarchy, "", unix.MS_BIND, ""))
			return path
		}
	}
	// Each has its own name: a hierarchy that is being removed still holds its
	// name.
	n.Put(hierarchy, "cgroup", fmt.Sprintf("none,name=slipway-test-%d-%d", os.Getpid(), hierarchies.Add(1)))
	return path
}

func hybrid(t testing.TB, n fsmounttest.Node) string {
	t.Helper()
	path := v1(t, n)
	n.Put(fsmounttest.Mkdir(t, n, "v1-node", "unified"), "cgroup2", "")
	return path
}

func TestCG3_Detect(t *testing.T) {
	for want, lay := range map[string]func(testing.TB, fsmounttest.Node) string{"v1": v1, "hybrid": hybrid, "unified": unified} {
		t.Run(want, func(t *testing.T) {
			got, err := cgroup.Detect(lay(t, fsmounttest.NewReal(t, false)))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestCG3_DetectDoesNotGuess(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	tmpfs := fsmounttest.Mkdir(t, n, "tmpfs")
	n.Put(tmpfs, "tmpfs", "")
	fsmounttest.Mkdir(t, n, "tmpfs", "unified")
	sysfs := fsmounttest.Mkdir(t, n, "sysfs")
	n.Put(sysfs, "sysfs", "")
	for _, path := range []string{tmpfs, sysfs, filepath.Join(n.Dir(), "missing")} {
		layout, err := cgroup.Detect(path)
		require.ErrorContains(t, err, path)
		require.Zero(t, layout)
	}
}

func TestCG3_ID(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	one, two := fsmounttest.Mkdir(t, n, "one"), fsmounttest.Mkdir(t, n, "two")
	n.Put(one, "cgroup2", "")
	n.Put(two, "cgroup2", "")
	name := "slipway-test-id-" + strconv.Itoa(os.Getpid())
	require.NoError(t, os.Mkdir(filepath.Join(one, name), 0o755))
	t.Cleanup(func() { require.NoError(t, os.Remove(filepath.Join(one, name))) })
	seen := map[uint64]bool{}
	for _, dir := range []string{".", name} {
		id, err := cgroup.ID(filepath.Join(one, dir))
		require.NoError(t, err)
		again, err := cgroup.ID(filepath.Join(two, dir))
		require.NoError(t, err)
		require.Equal(t, id, again)
		var s unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(one, dir), &s))
		if strconv.IntSize == 64 { // there the inode's number is the id
			require.Equal(t, s.Ino, id)
		}
		seen[id] = true
	}
	require.Len(t, seen, 2)
}

func TestCG3_OpenChecksTheType(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	path := unified(t, n)
	f, err := cgroup.Open(path)
	require.NoError(t, err)
	names, err := f.Readdirnames(-1)
	require.NoError(t, err)
	require.Contains(t, names, "cgroup.procs")
	require.NoError(t, f.Close())

	_, err = cgroup.Open(n.Dir())
	require.ErrorIs(t, err, cgroup.ErrForeign)
	require.Equal(t, "cgroup.foreign", code.Of(err))
	require.ErrorContains(t, err, n.Dir())
	_, err = cgroup.ID(n.Dir())
	require.ErrorIs(t, err, cgroup.ErrForeign)
	_, err = cgroup.Open(filepath.Join(path, "cgroup.procs"))
	require.ErrorIs(t, err, unix.ENOTDIR)
	_, err = cgroup.Open(filepath.Join(path, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCG4_UnifiedAndHybridNodes(t *testing.T) {
	for name, c := range map[string]struct {
		lay  func(testing.TB, fsmounttest.Node) string
		find string
	}{"unified": {unified, "."}, "hybrid": {hybrid, "unified"}} {
		t.Run(name, func(t *testing.T) {
			n := fsmounttest.NewReal(t, false)
			own := filepath.Join(c.lay(t, n), c.find)
			require.Empty(t, testledger.Changes(t, cgroup.Mount{Path: own}), "the node's own mount is accepted")

			path := filepath.Join(n.Dir(), "run", "cgroupv2")
			require.NoError(t, cgroup.EnsureMounted(path))
			var a, b unix.Stat_t
			require.NoError(t, unix.Stat(own, &a))
			require.NoError(t, unix.Stat(path, &b))
			require.Equal(t, []uint64{a.Dev, a.Ino}, []uint64{b.Dev, b.Ino})
		})
	}
}

func TestCG1_ForeignV1(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	hierarchy := filepath.Join(v1(t, n), "systemd")
	for _, path := range []string{hierarchy, filepath.Join(hierarchy, "slipway-test-missing")} {
		err := cgroup.EnsureMounted(path)
		require.ErrorIs(t, err, cgroup.ErrForeign)
		require.ErrorContains(t, err, "cgroup v1")
		require.NoDirExists(t, filepath.Join(hierarchy, "slipway-test-missing"))
	}
}

// A bind mount of the root is accepted; one of another cgroup is not.
func TestCG1_BindMounts(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old ", old), func(t *testing.T) {
			n := fsmounttest.NewReal(t, old)
			top := unified(t, n)
			below := filepath.Join(top, "slipway-test-bind-"+strconv.Itoa(os.Getpid()))
			require.NoError(t, os.Mkdir(below, 0o755))
			t.Cleanup(func() { require.NoError(t, os.Remove(below)) })
			whole, part := fsmounttest.Mkdir(t, n, "whole"), fsmounttest.Mkdir(t, n, "part")
			require.NoError(t, unix.Mount(top, whole, "", unix.MS_BIND, ""))
			require.NoError(t, unix.Mount(below, part, "", unix.MS_BIND, ""))

			require.Empty(t, testledger.Changes(t, cgroup.Mount{Path: whole, Kernel: n.Kernel()}))
			m := cgroup.Mount{Path: part, Kernel: n.Kernel()}
			require.ErrorIs(t, m.Apply(t.Context()), cgroup.ErrNotRoot)
			m.Repair = true
			require.NoError(t, m.Apply(t.Context()))
			require.Empty(t, testledger.Changes(t, cgroup.Mount{Path: part, Kernel: n.Kernel()}))
		})
	}
}

// There, a mount sets options of the node's whole hierarchy.
func TestCG1_CheckMakesNoMountInTheInitialCgroupNamespace(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	if name, err := os.Readlink("/proc/thread-self/ns/cgroup"); err != nil || name != "cgroup:[4026531835]" {
		testns.SkipKernel(t, "initial cgroup namespace here: make kernels-short runs it in one")
	}
	good, bad := fsmounttest.Mkdir(t, n, "good"), fsmounttest.Mkdir(t, n, "bad")
	n.Put(good, "cgroup2", "")
	n.Put(bad, "cgroup2", "root=/container")
	require.NoError(t, testns.Refuse(unix.ENOMEM, testns.NewMountCalls()...))
	require.Empty(t, testledger.Changes(t, cgroup.Mount{Path: good}))
	_, err := cgroup.Mount{Path: bad}.Check(t.Context())
	require.ErrorIs(t, err, cgroup.ErrNotRoot)
}

func TestCG1_RepairKeepsTheMountIfNoOtherCanBeMade(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	path := fsmounttest.Mkdir(t, n, "cgroupv2")
	n.Put(path, "cgroup2", "root=/container")
	require.NoError(t, testns.Refuse(unix.ENOMEM, testns.Call{Number: unix.SYS_FSMOUNT}))
	require.ErrorIs(t, cgroup.Mount{Path: path, Repair: true}.Apply(t.Context()), unix.ENOMEM)
	require.Equal(t, []string{"cgroup2"}, n.Mounts(path))
}

// Without the capability to mount, Check relies on mountinfo.
func TestPLAN7_CheckNeedsNoCapability(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	good, bad := fsmounttest.Mkdir(t, n, "good"), fsmounttest.Mkdir(t, n, "bad")
	n.Put(good, "cgroup2", "")
	n.InCgroup("/container", func() { n.Put(bad, "cgroup2", "") })
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var was, none [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &was[0]))
	none[0].Permitted, none[1].Permitted = was[0].Permitted, was[1].Permitted
	require.NoError(t, unix.Capset(&header, &none[0]))
	t.Cleanup(func() { require.NoError(t, unix.Capset(&header, &was[0])) })

	require.Empty(t, testledger.Changes(t, cgroup.Mount{Path: good}))
	_, err := cgroup.Mount{Path: bad}.Check(t.Context())
	require.ErrorIs(t, err, cgroup.ErrNotRoot)
	err = cgroup.EnsureMounted(fsmounttest.Mkdir(t, n, "new"))
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "CAP_SYS_ADMIN")
}
