// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

func TestSEC10_ProcOfTheHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	require.NoError(t, hostns.CheckProc(node.Proc()), "seen from the machine")

	// A directory with all that is looked for, and no proc file system.
	imitation := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join("/proc", strconv.Itoa(os.Getpid())), filepath.Join(imitation, "1")))
	require.ErrorContains(t, hostns.CheckProc(imitation), "it is not a proc file system")
	require.ErrorIs(t, hostns.CheckProc("/nonexistent"), fs.ErrNotExist)
}
