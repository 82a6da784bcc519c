// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// initIs is a kernel on which another process is pid 1.
type initIs struct {
	fsmount.Real
	procDir string
}

func (k initIs) Open(name string) (fs.File, error) {
	if name == mountinfo.InitPath {
		name = filepath.Join(k.procDir, "mountinfo")
	}
	return k.Real.Open(name)
}

// Another mount namespace stands for the host that must see the mount too.
func TestBPF3_OnTheRealKernel(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	m := bpffs.Mount{Path: filepath.Join(n.Dir(), "bpf"), Shared: true}
	private(t, m, n.Dir())

	require.NoError(t, unix.Mount("", n.Dir(), "", unix.MS_SHARED, ""))
	host := testns.Process(t, testns.Peers, "")
	// A peer group alone is not enough: the machine's pid 1 is in none of these.
	require.ErrorContains(t, m.Apply(t.Context()), "the mount on "+n.Dir()+" is shared, but not with pid 1")
	m.Kernel = initIs{procDir: host}
	require.NoError(t, m.Apply(t.Context()))

	f, err := os.Open(filepath.Join(host, "mountinfo"))
	require.NoError(t, err)
	defer f.Close()
	infos, err := mountinfo.Parse(f)
	require.NoError(t, err)
	require.Len(t, mountinfo.On(infos, m.Path), 1)
	require.NoError(t, unix.Unmount(m.Path, 0))
}

// capabilities leaves the test's thread, which ends with the test, only those
// of the set; user and group stay root's.
func capabilities(t testing.TB, set ...uint) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, c := range set {
		data[c/32].Effective |= 1 << (c % 32)
		data[c/32].Permitted |= 1 << (c % 32)
	}
	require.NoError(t, unix.Capset(&header, &data[0]))
}

func TestPLAN7_OneCapabilityIsEnough(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old ", old), func(t *testing.T) {
			n := fsmounttest.NewReal(t, old)
			capabilities(t, unix.CAP_SYS_ADMIN)
			m := applied(t, n)
			require.NoError(t, m.Apply(t.Context()))
			require.NoError(t, m.Undo(t.Context()))
			clean(t, n)
		})
	}
}

func TestPLAN7_WithoutItTheErrorNamesIt(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old ", old), func(t *testing.T) {
			testns.Enter(t, testns.Mount)
			dir := t.TempDir()
			if old {
				require.NoError(t, fsmounttest.OldCallsOnly())
			}
			capabilities(t)
			m := record(t, bpffs.Mount{Path: filepath.Join(dir, "sys", "bpf")})
			require.Len(t, testledger.Changes(t, m), 3, "reading needs no capability")
			err := m.Apply(t.Context())
			require.ErrorIs(t, err, unix.EPERM)
			require.ErrorContains(t, err, "CAP_SYS_ADMIN in the initial user namespace")
			require.ErrorContains(t, err, m.mount.Path)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "nothing was changed")
		})
	}
}

func TestPLAN5_ReadOnlyFileSystem(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	dir := fsmounttest.Mkdir(t, n, "dir")
	n.Put(dir, "tmpfs", "ro")
	path := filepath.Join(dir, "bpf")
	err := bpffs.EnsureMounted(path)
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "mounted read-write")
}

// The empty directories that an agent leaves in its bpffs after unpinning
// everything are no reason to keep it.
func TestBPF5_EmptyDirectoriesAreNoPins(t *testing.T) {
	n := fsmounttest.NewReal(t, false)
	m := record(t, bpffs.Mount{Path: fsmounttest.Mkdir(t, n, "bpf")})
	require.NoError(t, m.Apply(t.Context()))
	require.NoError(t, os.MkdirAll(filepath.Join(m.mount.Path, "tc/globals"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(m.mount.Path, "cilium"), 0o700))
	require.NoError(t, m.Undo(t.Context()))
	require.Empty(t, n.Mounts(m.mount.Path))
}
