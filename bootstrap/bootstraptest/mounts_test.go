// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
	"github.com/slipway-dev/slipway/sysctl"
)

var (
	_ mount.Mounter = (*bootstraptest.Kernel)(nil)
	_ sysctl.Files  = (*bootstraptest.Kernel)(nil)
)

func attach(k mount.Mounter, path, fstype string) error {
	return k.Mount("slipway-test", path, fstype, "nosuid,mode=700")
}

// The fake answers as the kernel does.
func TestAnswersAsTheKernelDoes(t *testing.T) {
	fsmounttest.OnEach(t, func(t *testing.T, n fsmounttest.Node) {
		k := fsmount.Or(n.Kernel())
		path := fsmounttest.Mkdir(t, n, "a b")
		missing, file := filepath.Join(n.Dir(), "missing"), filepath.Join(n.Dir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))

		_, _, _, err := k.Stat(missing)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, attach(k, missing, "bpf"), fs.ErrNotExist)
		require.ErrorIs(t, attach(k, file, "bpf"), syscall.ENOTDIR)
		require.ErrorIs(t, attach(k, path, "slipwayfs"), syscall.ENODEV)
		require.ErrorIs(t, k.Unmount(missing), fs.ErrNotExist)
		require.ErrorIs(t, k.Unmount(path), syscall.EINVAL)

		require.NoError(t, attach(k, path, "bpf"))
		fstype, _, first, err := k.Stat(path)
		require.NoError(t, err)
		require.Equal(t, "bpf", fstype)
		require.NotEmpty(t, first)
		require.ErrorIs(t, attach(k, path, "bpf"), syscall.EBUSY)
		require.NoError(t, attach(k, path, "tmpfs"), "another type is stacked")
		require.Equal(t, []string{"bpf", "tmpfs"}, n.Mounts(path))
		require.NoError(t, k.Unmount(path))
		_, _, again, err := k.Stat(path)
		require.NoError(t, err)
		require.Equal(t, first, again)

		infos, err := fsmount.Mounts(k)
		require.NoError(t, err)
		on := mountinfo.On(infos, path)
		require.Len(t, on, 1)
		require.Contains(t, on[0].Options, "nosuid")
		require.True(t, on[0].Whole())

		var names []string
		for e, err := range fsmount.Entries(k, path) { // a kernel without BPF_PRELOAD has none
			require.NoError(t, err)
			names = append(names, e.Name())
		}
		mark := "slipway-test" // identifies a bpffs that cannot have a source, before Linux 5.19
		require.Subset(t, []string{"maps.debug", "progs.debug", mark}, names)
		n.Pin(filepath.Join(path, "tc", "pin"))
		below := 0
		for e, err := range fsmount.Entries(k, filepath.Join(path, "tc")) {
			require.NoError(t, err)
			require.False(t, e.IsDir())
			below++
		}
		require.Equal(t, 1, below)
		release := n.Hold(path)
		require.ErrorIs(t, k.Unmount(path), syscall.EBUSY)
		release()
		require.NoError(t, k.Unmount(path), "pins do not keep it")
		require.ErrorIs(t, k.Unmount(path), syscall.EINVAL)
	})
}

func TestMountBelowKeepsTheUpperBusy(t *testing.T) {
	fsmounttest.OnEach(t, func(t *testing.T, n fsmounttest.Node) {
		k := fsmount.Or(n.Kernel())
		top := fsmounttest.Mkdir(t, n, "top")
		n.Put(top, "tmpfs", "mode=755")
		below := fsmounttest.Mkdir(t, n, "top", "below")
		require.NoError(t, attach(k, below, "bpf"))
		require.ErrorIs(t, k.Unmount(top), syscall.EBUSY)
		require.NoError(t, k.Unmount(below))
		require.NoError(t, k.Unmount(top))
	})
}

func TestCG1_OnlyACgroup2OfTheNamespaceShowsItsRoot(t *testing.T) {
	fsmounttest.OnEach(t, func(t *testing.T, n fsmounttest.Node) {
		for name, m := range map[string]struct {
			fstype, options string
			isRoot          bool
		}{"one": {"cgroup2", "", true}, "two": {"cgroup2", "", true}, "container": {"cgroup2", "root=/container", false}, "bpf": {"bpf", "", false}} {
			path := fsmounttest.Mkdir(t, n, name)
			n.Put(path, m.fstype, m.options)
			_, root, _, err := fsmount.Or(n.Kernel()).Stat(path)
			require.NoError(t, err)
			require.Equal(t, m.isRoot, root == "/", name)
		}
	})
}

func TestPinNeedsABpffs(t *testing.T) {
	k := &bootstraptest.Kernel{}
	dir := t.TempDir()
	require.ErrorIs(t, k.Pin(filepath.Join(dir, "pin")), syscall.EINVAL)
	require.NoError(t, k.PutMount(dir, "tmpfs", ""))
	require.ErrorIs(t, k.Pin(filepath.Join(dir, "pin")), syscall.EINVAL)
}
