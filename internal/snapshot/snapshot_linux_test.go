// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package snapshot_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	written := time.Unix(1, 0)
	for _, name := range []string{"kept", "edited", "longer", "chmodded", "removed"} {
		require.NoError(t, os.WriteFile(path(name), []byte("x"), 0o600))
		require.NoError(t, os.Chtimes(path(name), written, written))
	}
	require.NoError(t, os.Mkdir(path("point"), 0o700))
	require.NoError(t, os.Symlink("kept", path("link")))
	before, unread := take(t, dir), unreadOf(t, dir)
	require.Empty(t, before.Diff(take(t, dir)))
	require.Empty(t, unread.Diff(unreadOf(t, dir)))

	require.NoError(t, os.WriteFile(path("edited"), []byte("y"), 0o600))
	require.NoError(t, os.WriteFile(path("longer"), []byte("xy"), 0o600))
	require.NoError(t, os.Chtimes(path("longer"), written, written))
	require.NoError(t, os.Chmod(path("chmodded"), 0o644))
	require.NoError(t, os.Remove(path("removed")))
	require.NoError(t, os.Remove(path("link")))
	require.NoError(t, os.Symlink("longer", path("link")))
	require.NoError(t, os.WriteFile(path("new"), nil, 0o600))
	files := []string{
		"changed: file " + path("chmodded"), "changed: file " + path("edited"), "changed: file " + path("link"),
		"changed: file " + path("longer"), "gone: file " + path("removed"), "new: file " + path("new"),
	}
	requireDiff(t, unread.Diff(unreadOf(t, dir)), files...)

	require.NoError(t, unix.Mount("tmpfs", path("point"), "tmpfs", 0, ""))
	require.NoError(t, os.WriteFile(path("point/hidden"), nil, 0o600))
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/lo/rp_filter", []byte("2"), 0))
	requireDiff(t, before.Diff(take(t, dir)), append(files, "changed: file "+path("point"),
		"changed: sysctl /proc/sys/net/ipv4/conf/lo/rp_filter: was", "new: mount "+path("point")+" #1")...)
}

func unreadOf(t *testing.T, dir string) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Unread(dir))
	return s
}

// requireDiff looks for the begin of each line, in any order.
func requireDiff(t *testing.T, lines []string, want ...string) {
	t.Helper()
	require.Len(t, lines, len(want), "%q", lines)
	for _, begin := range want {
		require.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, begin) }), "%s is not in %q", begin, lines)
	}
}
