// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// files makes files and their directories; a name ending in a slash is a directory, one with an
// arrow a symbolic link.
func files(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case isLink:
			require.NoError(t, os.Symlink(target, path))
		case strings.HasSuffix(name, "/"):
			require.NoError(t, os.MkdirAll(path, 0o755))
		default:
			require.NoError(t, os.WriteFile(path, []byte(name), 0o640))
		}
	}
}

func stateOnly(dirs ...string) cleanup.Leftovers {
	return cleanup.Leftovers{Ownership: excepting(cleanup.Ownership{StateDirs: dirs}), Scope: "all-state"}
}

func TestCLN5_StateDir(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	outside := t.TempDir()
	files(t, outside, "precious/x")
	before := tree(t, outside)
	files(t, dir, "beside/x", "cilium/state/1/a", "cilium/state/2/", "cilium/.hidden",
		"cilium/out -> "+outside, "cilium/up -> ../beside", "cilium/dangling -> nowhere", "cilium/state/file -> "+outside+"/precious/x")
	socket, err := net.Listen("unix", filepath.Join(dir, "cilium", "cilium.sock"))
	require.NoError(t, err)
	socket.(*net.UnixListener).SetUnlinkOnClose(false)
	defer socket.Close()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "cilium", "fifo"), 0o600))

	c := stateOnly(filepath.Join(dir, "cilium"), filepath.Join(dir, "nothing"), filepath.Join(dir, "beside", "x", "y"))
	all := tree(t, dir)
	inv := listed(t, context.Background(), c)
	require.Equal(t, []string{"state directory " + dir + "/cilium"}, objects(inv.Items))
	require.Equal(t, "8 files, 3 directories", inv.Items[0].Detail)
	require.Equal(t, all, tree(t, dir), "listing changes nothing")

	apply(t, c)
	require.NoDirExists(t, filepath.Join(dir, "cilium"))
	require.FileExists(t, filepath.Join(dir, "beside", "x"))
	require.Equal(t, before, tree(t, outside))
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

func TestCLN5_ParentsMayBeLinks(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "run/cilium/x", "var/run -> ../run", "data/x", "run/linked -> ../data")
	c := stateOnly(filepath.Join(dir, "var", "run", "cilium"), filepath.Join(dir, "var", "run", "linked"))
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Len(t, inv.Items, 2)
	require.Equal(t, "a symbolic link to ../data; what it leads to is left as it is", inv.Items[1].Detail)
	apply(t, c)
	require.NoDirExists(t, filepath.Join(dir, "run", "cilium"))
	_, err = os.Lstat(filepath.Join(dir, "run", "linked"))
	require.ErrorIs(t, err, os.ErrNotExist, "a given path that is a link is removed as one")
	require.FileExists(t, filepath.Join(dir, "data", "x"))
}

func TestCLN5_TheRootAndRelativePathsAreNeverEmptied(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	for path, want := range map[string]string{
		"":              "the path is empty",
		"/":             "refusing to empty the root",
		"//":            "refusing to empty the root",
		"/tmp/..":       "refusing to empty the root",
		"run/cilium":    "want an absolute path",
		"./":            "want an absolute path",
		dir + "/isroot": "is the root of the file system: refusing to empty it",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "isroot"), 0o700))
		if strings.HasSuffix(path, "isroot") {
			require.NoError(t, unix.Mount("/", path, "", unix.MS_BIND, ""))
		}
		inv, err := stateOnly(path).Inventory(context.Background())
		require.ErrorContains(t, err, want, path)
		require.Empty(t, inv.Items)
		require.ErrorContains(t, stateOnly(path).Apply(context.Background()), want, path)
	}
	require.FileExists(t, "/etc/passwd")
}

func TestCLN5_MountsInside(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir, live := testns.TempDir(t), t.TempDir()
	files(t, live, "a/b", "file")
	before := tree(t, live)
	files(t, dir, "cilium/x", "cilium/m/", "cilium/deep/er/mount/", "cilium/file")
	cilium := filepath.Join(dir, "cilium")
	for _, at := range []string{"m", "m", "deep/er/mount", "deep/er/mount/a"} { // stacked, and nested
		require.NoError(t, unix.Mount(live, filepath.Join(cilium, at), "", unix.MS_BIND, ""))
	}
	require.NoError(t, unix.Mount(filepath.Join(live, "file"), filepath.Join(cilium, "file"), "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("tmpfs", filepath.Join(cilium, "m"), "tmpfs", 0, ""))

	c := stateOnly(cilium)
	inv := listed(t, context.Background(), c)
	require.ElementsMatch(t, []string{
		"mount " + cilium + "/m", "mount " + cilium + "/m", "mount " + cilium + "/m",
		"mount " + cilium + "/deep/er/mount", "mount " + cilium + "/deep/er/mount/a",
		"mount " + cilium + "/file", "state directory " + cilium,
	}, objects(inv.Items))
	apply(t, c)
	require.NoDirExists(t, cilium)
	require.Equal(t, before, tree(t, live))
}

// A hostPath volume.
func TestCLN5_DirThatIsAMountPointIsEmptied(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir, volume := testns.TempDir(t), t.TempDir()
	files(t, volume, "a/b", "c")
	require.NoError(t, unix.Mount(volume, dir, "", unix.MS_BIND, ""))
	apply(t, stateOnly(dir))
	require.Empty(t, tree(t, dir))
	require.Empty(t, tree(t, volume))
	require.Contains(t, run(t, "cat", "/proc/thread-self/mountinfo"), " "+dir+" ")
}

func TestCLN4_StateDirWithoutPermission(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	files(t, dir, "cilium/closed/file", "cilium/x")
	require.NoError(t, os.Chmod(filepath.Join(dir, "cilium", "closed"), 0o500))
	dropCapability(t, unix.CAP_DAC_OVERRIDE)
	err := stateOnly(filepath.Join(dir, "cilium")).Apply(context.Background())
	require.ErrorIs(t, err, unix.EACCES)
	require.ErrorContains(t, err, dir+"/cilium/closed/file: permission denied (needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner")
	require.NoFileExists(t, filepath.Join(dir, "cilium", "x"))

	ro := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", ro, "tmpfs", 0, ""))
	files(t, ro, "cilium/x")
	require.NoError(t, unix.Mount("", ro, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	err = stateOnly(filepath.Join(ro, "cilium")).Apply(context.Background())
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, "(needs a file system mounted read-write)")
}

// Objects held by another record stay; once only those are left, nothing remains to be done.
func TestCLN8_KeptPathsStay(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir, live := testns.TempDir(t), t.TempDir()
	files(t, live, "x")
	files(t, dir, "run/cilium/cgroupv2/", "run/cilium/other/", "run/cilium/state/x", "run/cilium/conf", "run/cilium/made/y", "run/cilium/record/lock", "var/run -> ../run")
	cilium := filepath.Join(dir, "var", "run", "cilium")
	for _, at := range []string{"cgroupv2", "other"} {
		require.NoError(t, unix.Mount(live, filepath.Join(cilium, at), "", unix.MS_BIND, ""))
	}
	c := stateOnly(cilium)
	c.Keep = []string{cilium + "/cgroupv2", cilium + "/conf", dir + "/gone/x", cilium + "/record"}
	c.KeepDirs = []string{dir + "/run/cilium/made"}
	inv := listed(t, context.Background(), c)
	require.Equal(t, "2 files, 1 directory; kept in it: cgroupv2, conf, made and 1 more", inv.Items[1].Detail, "the first is the other mount")
	itself := c
	itself.KeepDirs = []string{cilium}
	inv = listed(t, context.Background(), itself)
	require.Contains(t, inv.Items[1].Detail, "; the directory itself is kept; kept in it: cgroupv2, conf, record")
	apply(t, c)
	require.Equal(t, "cgroupv2\ncgroupv2/x\nconf\nmade\nrecord\nrecord/lock\n",
		strings.Join(sorted(strings.SplitAfter(run(t, "find", cilium+"/", "-mindepth", "1", "-printf", "%P\n"), "\n")), ""))

	c.Keep = []string{"/"}
	require.ErrorContains(t, c.Apply(context.Background()), "path to keep /: refusing to empty")
}
