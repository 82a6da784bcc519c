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

// An attacker who can write to the directory puts his own file there and takes a lease on it
// (fcntl(2), F_SETLEASE): opening it would take 45 s, so it is refused without waiting.
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
