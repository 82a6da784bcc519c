// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package snapshot_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
)

func take(t *testing.T, dir string) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Files(dir, filepath.Join(dir, "missing")))
	require.NoError(t, s.Mounts())
	require.NoError(t, s.Links())
	require.NoError(t, s.Values("net/ipv4/conf/lo"))
	return s
}

func TestDiffNamesEachKindOfChange(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir := testns.TempDir(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"kept", "edited", "chmodded", "removed"} {
		require.NoError(t, os.WriteFile(path(name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Mkdir(path("point"), 0o700))
	before := take(t, dir)
	require.Empty(t, before.Diff(take(t, dir)))

	require.NoError(t, os.WriteFile(path("edited"), []byte("y"), 0o600))
	require.NoError(t, os.Chmod(path("chmodded"), 0o644))
	require.NoError(t, os.Remove(path("removed")))
	require.NoError(t, os.Symlink("kept", path("new")))
	require.NoError(t, unix.Mount("tmpfs", path("point"), "tmpfs", 0, ""))
	require.NoError(t, os.WriteFile(path("point/hidden"), nil, 0o600))
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/lo/rp_filter", []byte("2"), 0))

	diff := before.Diff(take(t, dir))
	require.Len(t, diff, 7, "%q", diff)
	for i, want := range []string{
		"changed: file " + path("chmodded"), "changed: file " + path("edited"), "changed: file " + path("point"),
		"gone: file " + path("removed"), "changed: sysctl /proc/sys/net/ipv4/conf/lo/rp_filter: was",
		"new: file " + path("new"), "new: mount " + path("point") + " #1",
	} {
		require.Contains(t, diff[i], want)
	}
}

func TestUnreadSeesWhatWasWritten(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	look := func() snapshot.Snapshot {
		s := snapshot.Snapshot{}
		require.NoError(t, s.Unread(dir))
		return s
	}
	written := time.Unix(1, 0)
	for _, name := range []string{"kept", "longer", "rewritten", "chmodded", "removed"} {
		require.NoError(t, os.WriteFile(path(name), []byte("x"), 0o600))
		require.NoError(t, os.Chtimes(path(name), written, written))
	}
	require.NoError(t, os.Symlink("kept", path("link")))
	before := look()
	require.Empty(t, before.Diff(look()))

	require.NoError(t, os.WriteFile(path("longer"), []byte("xy"), 0o600))
	require.NoError(t, os.Chtimes(path("longer"), written, written))
	require.NoError(t, os.WriteFile(path("rewritten"), []byte("x"), 0o600))
	require.NoError(t, os.Chmod(path("chmodded"), 0o644))
	require.NoError(t, os.Remove(path("removed")))
	require.NoError(t, os.Remove(path("link")))
	require.NoError(t, os.Symlink("longer", path("link")))
	require.NoError(t, os.WriteFile(path("new"), nil, 0o600))

	diff := before.Diff(look())
	require.Len(t, diff, 6, "%q", diff)
	for i, want := range []string{
		"changed: file " + path("chmodded"), "changed: file " + path("link"), "changed: file " + path("longer"),
		"gone: file " + path("removed"), "changed: file " + path("rewritten"), "new: file " + path("new"),
	} {
		require.Contains(t, diff[i], want)
	}
}
