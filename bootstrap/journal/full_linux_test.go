// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/testns"
)

// A change that does not fit on the disk is an error, and the journal stays as it was, with no
// part of the change left in it.
func TestPLAN6_AChangeForWhichThereIsNoSpace(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, "size=128k"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(root, unix.MNT_DETACH)) })
	dir, fill := filepath.Join(root, "state"), filepath.Join(root, "fill")
	j := open(t, dir, journal.Node{})
	ctx := step(t, j, "s")
	e := func(object string, size int) journal.Entry {
		return journal.Entry{Kind: "acme/value", Object: object, After: value(strings.Repeat("x", size))}
	}
	require.NoError(t, j.Begin(ctx, e("a", 1)))
	before, err := os.ReadFile(filepath.Join(dir, "agent.journal"))
	require.NoError(t, err)
	state := seen(t, j)
	require.ErrorIs(t, os.WriteFile(fill, make([]byte, 1<<20), 0o600), unix.ENOSPC)
	for range 2 {
		err = j.Begin(ctx, e("b", 9000), e("c", 9000))
		require.ErrorIs(t, err, unix.ENOSPC)
		require.ErrorContains(t, err, dir)
		after, err := os.ReadFile(filepath.Join(dir, "agent.journal"))
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Equal(t, state, seen(t, j))
		require.Equal(t, state, seen(t, open(t, dir, journal.Node{})))
	}
	require.NoError(t, j.Begin(ctx, e("small", 1)), "it fits into the file's last page")
	require.NoError(t, os.Remove(fill))
	require.NoError(t, j.Begin(ctx, e("b", 9000), e("c", 9000)))
	require.Equal(t, []string{"a", "small", "b", "c"}, objects(t, open(t, dir, journal.Node{})))
}
