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
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// applied is a node with some paths made.
func applied(t *testing.T) (node string, a recorded) {
	t.Helper()
	node = t.TempDir()
	a = recorded{hostpath.Paths{List: []hostpath.Path{
		{node + "/var/agent", hostpath.DirectoryOrCreate},
		{node + "/var/agent/lock", hostpath.FileOrCreate},
		{node + "/opt", hostpath.DirectoryOrCreate},
	}}, journaltest.Open(t, filepath.Join(node, "slipway"))}
	require.NoError(t, a.Apply(t.Context()))
	return node, a
}

func TestHP1_RevertRemovesOnlyWhatItMade(t *testing.T) {
	node, a := applied(t)
	changes, err := a.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"remove directory " + node + "/opt",
		"remove file " + node + "/var/agent/lock",
		"remove directory " + node + "/var/agent",
		"remove directory " + node + "/var",
	}, changes)
	write(t, node+"/theirs")

	another := recorded{hostpath.Paths{}, journaltest.Open(t, a.Journal.Dir())} // another process, which knows no paths
	require.NoError(t, another.Revert(t.Context()))
	require.Equal(t, []string{node, node + "/theirs"}, names(t, node))
}

func TestHP1_RevertLeavesWhatIsInUse(t *testing.T) {
	node, a := applied(t)
	write(t, node+"/opt/theirs")
	require.NoError(t, os.WriteFile(node+"/var/agent/lock", []byte("4711"), 0o644))

	changes, foreseen := a.CheckRevert(t.Context())
	require.Empty(t, changes)

	err := a.Revert(t.Context())
	require.ErrorContains(t, err, foreseen.Error())
	require.ErrorContains(t, err, node+"/opt")
	require.ErrorContains(t, err, "holds theirs")
	require.ErrorContains(t, err, node+"/var/agent/lock is no longer as it was left")
	require.FileExists(t, node+"/opt/theirs")
	require.FileExists(t, node+"/var/agent/lock")

	require.ErrorContains(t, a.Revert(t.Context()), "holds theirs", "until it is empty")
	require.NoError(t, errors.Join(os.Remove(node+"/opt/theirs"), os.Remove(node+"/var/agent/lock")))
	require.NoError(t, a.Revert(t.Context()))
	require.Equal(t, []string{node}, names(t, node))
}

func TestHP1_RevertOfWhatIsGone(t *testing.T) {
	node, a := applied(t)
	require.NoError(t, os.RemoveAll(node+"/var"))
	changes, err := a.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove directory " + node + "/opt"}, changes)
	require.NoError(t, a.Revert(t.Context()))
	require.Equal(t, []string{node}, names(t, node))
}

func TestHP1_LockOfIptablesIsNeverRemoved(t *testing.T) {
	node := t.TempDir()
	lock := node + "/run/xtables.lock"
	a := recorded{hostpath.Paths{List: []hostpath.Path{
		{node + "/run", hostpath.DirectoryOrCreate},
		{lock, hostpath.FileOrCreate},
		{node + "/run/other.lock", hostpath.FileOrCreate},
	}}, journaltest.Open(t, filepath.Join(node, "slipway"))}
	require.NoError(t, a.Apply(t.Context()))
	require.FileExists(t, lock)
	changes, err := a.CheckRevert(t.Context())
	require.ErrorContains(t, err, "holds xtables.lock")
	require.Equal(t, []string{"remove file " + node + "/run/other.lock"}, changes)
	require.ErrorContains(t, a.Revert(t.Context()), "holds xtables.lock")
	require.NoFileExists(t, node+"/run/other.lock")
	require.FileExists(t, lock)

	// A record that claims the file was made does not change that.
	now, err := journal.Snapshot(t.Context(), lock)
	require.NoError(t, err)
	e := journal.Entry{Kind: "hostpath/file", Object: lock, After: now}
	require.NoError(t, a.Journal.Begin(t.Context(), e))
	require.NoError(t, a.Journal.Complete(t.Context(), e))
	changes, err = a.CheckRevert(t.Context())
	require.ErrorContains(t, err, "holds xtables.lock")
	require.Empty(t, changes)
	require.ErrorContains(t, a.Revert(t.Context()), "holds xtables.lock")
	require.FileExists(t, lock)
	require.NoError(t, os.Remove(lock))
	require.NoError(t, a.Revert(t.Context()))
	require.NoDirExists(t, a.Journal.Dir())
}

// A process killed between its two records leaves an entry begun: the object itself shows
// whether it was made.
func TestPLAN6_RevertAfterKill(t *testing.T) {
	for name, tc := range map[string]struct {
		made    func(t *testing.T, dir, file string)
		changes int
	}{
		"before it was made": {func(*testing.T, string, string) {}, 0},
		"after the directory": {func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o700))
		}, 1},
		"after the file, with the umask's mode": {func(t *testing.T, dir, file string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			node := t.TempDir()
			dir, file := node+"/dir", node+"/dir/file"
			a := recorded{hostpath.Paths{List: []hostpath.Path{
				{dir, hostpath.DirectoryOrCreate}, {file, hostpath.FileOrCreate},
			}}, journaltest.Open(t, node+"/slipway")}
			require.NoError(t, a.Apply(t.Context()))
			journaltest.Begun(t, a.Journal.Dir())
			require.NoError(t, os.RemoveAll(dir))
			tc.made(t, dir, file)

			changes, err := a.CheckRevert(t.Context())
			require.NoError(t, err)
			require.Len(t, changes, tc.changes)
			require.NoError(t, a.Revert(t.Context()))
			require.Equal(t, []string{node}, names(t, node))
		})
	}
}

func TestApplyAgainKeepsTheRecord(t *testing.T) {
	node, a := applied(t)
	require.NoError(t, os.RemoveAll(node+"/var"))
	require.NoError(t, a.Apply(t.Context()))
	require.NoError(t, a.Apply(t.Context()))
	require.NoError(t, a.Revert(t.Context()))
	require.Equal(t, []string{node}, names(t, node))
}

func TestUnreadableRecord(t *testing.T) {
	node, a := applied(t)
	require.NoError(t, os.WriteFile(a.Journal.Dir()+"/agent.journal", []byte("{"), 0o600))
	require.ErrorIs(t, a.Revert(t.Context()), journal.ErrUnreadable)
	_, err := a.CheckRevert(t.Context())
	require.ErrorIs(t, err, journal.ErrUnreadable)
	require.DirExists(t, node+"/opt")

	require.NoError(t, a.Apply(t.Context()), "nothing to make, nothing to record")
	require.NoError(t, os.Remove(node+"/opt"))
	require.ErrorIs(t, a.Apply(t.Context()), journal.ErrUnreadable)
	require.NoDirExists(t, node+"/opt", "not made, since it could not be recorded")
}
