// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve/configdir"
)

// Whoever may write in the directory has put a file of his own there, on which he has a
// lease (fcntl(2), F_SETLEASE): to open it would take 45 s, and is refused without waiting.
func TestSEC7_ALeasedFileIsReplaced(t *testing.T) {
	w := configdir.Writer{Path: filepath.Join(t.TempDir(), "d"), Config: config(t, values{"a": "1"})}
	require.NoError(t, w.Apply(t.Context()))
	his, err := os.OpenFile(w.Path+"/..data/a", os.O_RDWR, 0)
	require.NoError(t, err)
	defer his.Close()
	_, err = unix.FcntlInt(his.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	require.NoError(t, err)
	changes, err := w.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"write " + w.Path + "/a"}, changes)
	require.NoError(t, w.Apply(t.Context()))
	requireLayout(t, w.Path, w.Config)
}
