// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// An original shares its blocks with its copy where the file system can, and keeps its content
// when it is written to.
func TestPLAN6_AnOriginalIsClonedWhereTheFileSystemCan(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	out, err := exec.Command("sh", "-euc", `cd "$0"; mkdir disk; truncate -s 300M image; mkfs.xfs -q image; mount -o loop image disk`, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	disk := filepath.Join(dir, "disk")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, 0)) })
	used := func() uint64 {
		unix.Sync()
		var s unix.Statfs_t
		require.NoError(t, unix.Statfs(disk, &s))
		return (s.Blocks - s.Bfree) * uint64(s.Bsize)
	}
	const size = 64 << 20
	path, theirs, open := filepath.Join(disk, "plugin"), bytes.Repeat([]byte("theirs.\n"), size/8), filepath.Join(disk, "open")
	require.NoError(t, os.WriteFile(path, theirs, 0o755))
	require.NoError(t, os.Link(path, open))
	before := used()
	book := opened(t, disk)
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o755, []byte("ours"))))
	require.Less(t, used()-before, uint64(size/2), "no second copy")
	require.NoError(t, os.WriteFile(open, bytes.Repeat([]byte("changed\n"), size/8), 0o755))
	require.NoError(t, undo(t, book))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(theirs, now))
}
