// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// applied is a node with some paths made.
func applied(t *testing.T) (node string, a testledger.Step) {
	t.Helper()
	node = t.TempDir()
	a = testledger.Step{Wanter: hostpath.Paths{List: []hostpath.Path{
		{node + "/var/agent", hostpath.DirectoryOrCreate},
		{node + "/var/agent/lock", hostpath.FileOrCreate},
		{node + "/opt", hostpath.DirectoryOrCreate},
	}}, Book: testledger.Open(t, filepath.Join(node, "slipway"))}
	require.NoError(t, a.Apply(t.Context()))
	return node, a
}

func TestHP1_RevertRemovesOnlyWhatItMade(t *testing.T) {
	node, a := applied(t)
	changes, err := a.CheckUndo(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"remove directory " + node + "/opt",
		"remove file " + node + "/var/agent/lock",
		"remove directory " + node + "/var/agent",
		"remove directory " + node + "/var",
	}, changes)
	write(t, node+"/theirs")

	another := testledger.Step{Wanter: hostpath.Paths{}, Book: testledger.Open(t, filepath.Join(node, "slipway"))} // another process, which knows no paths
	require.NoError(t, another.Undo(t.Context()))
	require.Equal(t, []string{node, node + "/theirs"}, names(t, node))
}

func TestHP1_RevertLeavesWhatIsInUse(t *testing.T) {
	node, a := applied(t)
	write(t, node+"/opt/theirs")
	require.NoError(t, os.WriteFile(node+"/var/agent/lock", []byte("4711"), 0o644))

	changes, foreseen := a.CheckUndo(t.Context())
	require.Empty(t, changes)

	err := a.Undo(t.Context())
	require.ErrorContains(t, err, foreseen.Error())
	require.ErrorContains(t, err, node+"/opt")
	require.ErrorContains(t, err, "holds theirs")
	require.ErrorContains(t, err, node+"/var/agent/lock is no longer as it was left")
	require.FileExists(t, node+"/opt/theirs")
	require.FileExists(t, node+"/var/agent/lock")

	require.ErrorContains(t, a.Undo(t.Context()), "holds theirs", "until it is empty")
	require.NoError(t, errors.Join(os.Remove(node+"/opt/theirs"), os.Remove(node+"/var/agent/lock")))
	require.NoError(t, a.Undo(t.Context()))
	require.Equal(t, []string{node}, names(t, node))
}

func TestHP1_LockOfIptablesIsNeverRemoved(t *testing.T) {
	node := t.TempDir()
	lock := node + "/run/xtables.lock"
	a := testledger.Step{Wanter: hostpath.Paths{List: []hostpath.Path{
		{node + "/run", hostpath.DirectoryOrCreate},
		{lock, hostpath.FileOrCreate},
		{node + "/run/other.lock", hostpath.FileOrCreate},
	}}, Book: testledger.Open(t, filepath.Join(node, "slipway"))}
	require.NoError(t, a.Apply(t.Context()))
	require.FileExists(t, lock)
	changes, err := a.CheckUndo(t.Context())
	require.ErrorContains(t, err, "holds xtables.lock")
	require.Equal(t, []string{
		"remove file " + node + "/run/other.lock", "leave " + lock + " as it is: a process may hold this lock",
	}, changes)
	require.ErrorContains(t, a.Undo(t.Context()), "holds xtables.lock")
	require.NoFileExists(t, node+"/run/other.lock")
	require.FileExists(t, lock)

	require.NoError(t, os.Remove(lock))
	require.NoError(t, a.Undo(t.Context()))
	require.NoDirExists(t, filepath.Join(node, "slipway"))
}
