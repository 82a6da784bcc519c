// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestHP1_TypesOnTheKernel(t *testing.T) {
	testns.Root(t)
	node := t.TempDir()
	require.NoError(t, os.Mkdir(node+"/dir", 0o755))
	write(t, node+"/file")
	socket, err := net.Listen("unix", node+"/socket")
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, unix.Mkfifo(node+"/pipe", 0o600))
	if err := unix.Mknod(node+"/block", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		testns.Skip(t, "mknod of a block device: "+err.Error())
	}
	existing := map[string]string{
		node + "/dir": "Directory", node + "/file": "File", node + "/socket": "Socket",
		"/dev/null": "CharDevice", node + "/block": "BlockDevice", node + "/pipe": "FIFO",
	}
	for path, is := range existing {
		for _, want := range []string{
			"Directory", "File", "Socket", "CharDevice", "BlockDevice",
		} {
			_, err := one(path, want).Check(t.Context())
			if is == want {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, path+" is a "+string(is)+", and must be a "+string(want))
		}
	}
}

func TestPLAN5_ErrorsNameTheRemedy(t *testing.T) {
	testns.Enter(t, testns.Mount)
	node := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", node, "tmpfs", unix.MS_RDONLY, ""))
	defer unix.Unmount(node, unix.MNT_DETACH)
	err := one(node+"/x", "DirectoryOrCreate").Apply(t.Context())
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, "make directory "+node+"/x")
	require.ErrorContains(t, err, "mounted read-write")

	require.NoError(t, unix.Mount("", node, "", unix.MS_REMOUNT, "mode=700"))
	require.NoError(t, unix.Setfsuid(65534)) // this thread only; takes CAP_DAC_OVERRIDE away
	defer unix.Setfsuid(0)
	for _, path := range []string{node + "/x", node + "/x/y"} {
		_, err = one(path, "DirectoryOrCreate").Check(t.Context())
		require.ErrorIs(t, err, unix.EACCES)
		require.ErrorContains(t, err, "look at host path "+path)
		require.ErrorContains(t, err, "CAP_DAC_OVERRIDE")
	}
}

// A user who can open a lock can hold it forever.
func TestHP1_SEC7_OnlyRootCanHoldTheLockOfIPTables(t *testing.T) {
	node := t.TempDir()
	require.NoError(t, os.Mkdir(node+"/run", 0o755))
	old := unix.Umask(0)
	defer unix.Umask(old)
	a := testledger.Step{Wanter: hostpath.Paths{
		{Path: node + "/run/xtables.lock", Type: "FileOrCreate"}, {Path: node + "/run/other.lock", Type: "FileOrCreate"},
	}}
	require.NoError(t, a.Apply(t.Context()))
	for name, mode := range map[string]os.FileMode{"xtables.lock": 0o600, "other.lock": 0o644} {
		requireMode(t, node+"/run/"+name, mode)
	}
}

// A directory shared with a pod does not affect paths made elsewhere.
func TestSEC1_ALinkOfOthersIsNotFollowed(t *testing.T) {
	testns.Root(t)
	const stranger = 65534
	dir := t.TempDir()
	for _, name := range []string{"/shared", "/host"} {
		require.NoError(t, os.Mkdir(dir+name, 0o755))
	}
	require.NoError(t, os.Symlink("/proc/self/root"+dir+"/host", dir+"/shared/link"))
	require.NoError(t, os.Chown(dir+"/shared", stranger, stranger))
	for path, typ := range map[string]string{
		"/shared/link/dir": "DirectoryOrCreate", "/shared/link/file": "FileOrCreate",
	} {
		err := one(dir+path, typ).Apply(t.Context())
		require.ErrorContains(t, err, "a symbolic link that others may change", path)
	}
	names, err := os.ReadDir(dir + "/host")
	require.NoError(t, err)
	require.Empty(t, names)
}
