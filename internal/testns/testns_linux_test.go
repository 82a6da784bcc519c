// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

func namespace(t *testing.T, thread, kind string) string {
	t.Helper()
	link, err := os.Readlink(filepath.Join("/proc", thread, "ns", kind))
	require.NoError(t, err)
	return link
}

func TestEnterGivesOwnNamespaces(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net|testns.Cgroup|testns.UTS|testns.IPC)
	for _, kind := range []string{"mnt", "net", "cgroup", "uts", "ipc"} {
		require.NotEqual(t, namespace(t, "self", kind), namespace(t, "thread-self", kind), kind)
	}

	out, err := exec.Command("readlink", "/proc/self/ns/mnt").Output()
	require.NoError(t, err)
	require.Equal(t, namespace(t, "thread-self", "mnt")+"\n", string(out), "a child program is inside")

	lo, err := net.InterfaceByName("lo")
	require.NoError(t, err)
	require.NotZero(t, lo.Flags&net.FlagUp)
}

func TestEnterProtectsTheMachinesSysctls(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	const machines, own = "/proc/sys/kernel/panic", "/proc/sys/net/ipv4/ip_forward"
	value, err := os.ReadFile(machines)
	require.NoError(t, err)
	require.ErrorIs(t, os.WriteFile(machines, value, 0), unix.EROFS)
	require.NoError(t, os.WriteFile(own, []byte("1"), 0))
}

func TestMountsStayInside(t *testing.T) {
	dir := t.TempDir()
	t.Run("inside", func(t *testing.T) {
		testns.Enter(t, testns.Mount)
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	})
	require.NoFileExists(t, filepath.Join(dir, "file"))
}

func TestTempDirDetachesBeforeItRemoves(t *testing.T) {
	source := t.TempDir()
	kept := filepath.Join(source, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	var dir string
	t.Run("inside", func(t *testing.T) {
		testns.Enter(t, testns.Mount)
		dir = testns.TempDir(t)
		point := filepath.Join(dir, "a b")
		require.NoError(t, os.Mkdir(point, 0o700))
		require.NoError(t, unix.Mount(source, point, "", unix.MS_BIND, ""))
		require.NoError(t, unix.Mount(source, point, "", unix.MS_BIND, ""))
	})
	require.NoDirExists(t, dir)
	require.FileExists(t, kept)
}

func TestAProcessHasNamespacesOfItsOwn(t *testing.T) {
	var dir string
	t.Run("while the test runs", func(t *testing.T) {
		dir = testns.Process(t, testns.Mount|testns.Net|testns.Cgroup|testns.UTS|testns.IPC, "")
		for _, kind := range []string{"mnt", "net", "cgroup", "uts", "ipc"} {
			own, err := os.Readlink(filepath.Join(dir, "ns", kind))
			require.NoError(t, err)
			require.NotEqual(t, namespace(t, "self", kind), own, kind)
		}
		same := testns.Process(t, testns.UTS, "")
		own, err := os.Readlink(filepath.Join(same, "ns/net"))
		require.NoError(t, err)
		require.Equal(t, namespace(t, "self", "net"), own)
	})
	require.NoDirExists(t, dir)
}

func TestOnlyPeersShareWhatIsMounted(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	require.NoError(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
	apart, peer := testns.Process(t, testns.Mount, ""), testns.Process(t, testns.Peers, "")
	point := filepath.Join(dir, "point")
	require.NoError(t, os.Mkdir(point, 0o700))
	require.NoError(t, unix.Mount("tmpfs", point, "tmpfs", 0, ""))
	require.NoError(t, os.WriteFile(filepath.Join(point, "file"), nil, 0o600))
	require.FileExists(t, filepath.Join(peer, "root", point, "file"))
	require.NoFileExists(t, filepath.Join(apart, "root", point, "file"))
}
