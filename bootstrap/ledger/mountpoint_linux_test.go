// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// The attributes of what is mounted on a directory are not the directory's.
func TestPLAN6_AMountPointIsStillTheDirectory(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := testns.TempDir(t)
	book := opened(t, root)
	point := filepath.Join(root, "made", "point")
	wants, err := ledger.DirWants(point, 0o755)
	require.NoError(t, err)
	require.NoError(t, apply(t, book, wants...))

	require.NoError(t, unix.Mount("tmpfs", point, "tmpfs", 0, "mode=700"))
	look := checked(t, book, "step", ledger.Wants{List: wants})
	require.Empty(t, look.Changes)
	err = undo(t, book)
	require.ErrorContains(t, err, "something is mounted on it")
	require.DirExists(t, point)
	require.NoError(t, unix.Unmount(point, 0))
	require.NoError(t, undo(t, book))
	require.NoDirExists(t, filepath.Dir(point))
}
