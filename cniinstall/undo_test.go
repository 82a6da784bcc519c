// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// begun marks an object's entry as begun but not done, as a crash leaves it; all entries if
// object is empty.
func begun(t *testing.T, n node, object string) {
	t.Helper()
	journaltest.Edit(t, n.state, func(e *journal.Entry) { e.Done = e.Done && object != "" && e.Object != object })
}

// dropEntry removes an object from the record.
func dropEntry(t *testing.T, n node, object string) {
	t.Helper()
	dropped := 0
	journaltest.EditEach(t, n.state, func(e journal.Entry) (journal.Entry, bool) {
		if e.Object == object {
			dropped++
		}
		return e, e.Object != object
	})
	require.Positive(t, dropped)
}

// For every kind of entry that was begun and not completed, the node shows whether the change
// was made. Each file alone and all together, with the change made and not made.
func TestCNI8_BegunAndNotCompleted(t *testing.T) {
	n := newNode(t)
	i := n.exclusive()
	n.others()
	n.source("extra", script("0.3.1", "1.0.0"))
	write(t, n.confFile(), "ours, older", 0o644)
	write(t, n.plugin("cilium-cni"), "old", 0o755)
	before := tree(t, n.root)
	unmade := map[string]func(){ // undoes the change of an entry that was only begun
		n.confFile():           func() { write(t, n.confFile(), "ours, older", 0o644) },
		n.plugin("cilium-cni"): func() { write(t, n.plugin("cilium-cni"), "old", 0o755) },
		n.plugin("extra"):      func() { require.NoError(t, os.Remove(n.plugin("extra"))) },
	}
	for _, name := range []string{"00-multus.conf", "01-broken.conflist", "10-aws.conflist", "99-loopback.json"} {
		back := func() { require.NoError(t, os.Rename(n.other(name)+".cilium_bak", n.other(name))) }
		unmade[n.other(name)], unmade[n.other(name)+".cilium_bak"] = back, back
	}
	times := func(found map[string]string) map[string]string { // ours were rewritten
		for _, path := range []string{n.confFile(), n.plugin("cilium-cni")} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			found[path] = info.Mode().String() + string(raw)
		}
		return found
	}
	before = times(before)
	for _, made := range []bool{true, false} {
		for object := range unmade {
			require.NoError(t, i.Apply(t.Context()))
			requireConverged(t, i, n.root)
			begun(t, n, object)
			if !made {
				unmade[object]()
			}
			require.NoError(t, i.Revert(t.Context()), object)
			require.Equal(t, before, times(tree(t, n.root)), object)
		}
	}
	require.NoError(t, i.Apply(t.Context()))
	begun(t, n, "")
	require.NoError(t, i.Apply(t.Context()))
	begun(t, n, "")
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, times(tree(t, n.root)))
}

// Directories that were only recorded, or made but not marked complete.
func TestCNI8_DirectoriesBegunOnly(t *testing.T) {
	for _, made := range []bool{true, false} {
		n := newNode(t)
		before := tree(t, n.root)
		i := n.install()
		require.NoError(t, i.Apply(t.Context()))
		begun(t, n, "")
		if !made {
			require.NoError(t, os.RemoveAll(n.root+"/opt"))
			require.NoError(t, os.RemoveAll(n.root+"/etc"))
		}
		require.NoError(t, i.Revert(t.Context()))
		require.Equal(t, before, tree(t, n.root))
	}
}

// If a record is corrupt or of a newer version, nothing is applied or reverted, and the error
// names the file.
func TestCNI8_RecordThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	n.others()
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	path := filepath.Join(n.state, "agent.journal")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, content := range map[string]string{
		"empty":        "",
		"torn":         string(good[:40]),
		"newer schema": string(journaltest.Format([]byte(`{"record":"journal","schema":4,"agent":"agent"}`))),
		"zeros":        string(make([]byte, len(good))),
		"twice":        string(good) + string(good),
	} {
		write(t, path, content, 0o600)
		require.NoError(t, os.RemoveAll(n.confFile()))
		before := tree(t, n.root)
		for _, err := range []error{
			i.Revert(t.Context()), second(i.CheckRevert(t.Context())), i.Apply(t.Context()), second(i.Check(t.Context())),
		} {
			require.ErrorContains(t, err, path, name)
			require.ErrorContains(t, err, "nothing is undone by guess", name)
		}
		require.Equal(t, before, tree(t, n.root), name)
	}
	write(t, path, string(good), 0o600)
	require.NoError(t, i.Apply(t.Context()))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.state)
}

// A configuration that the user has taken over is kept with the plugins it names; a revert that
// no longer keeps it removes all of them.
func TestCNI8_KeepConf(t *testing.T) {
	n := newNode(t)
	n.others()
	n.source("extra", script("0.3.1", "1.0.0"))
	before := tree(t, n.root)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	kept := tree(t, n.conf)

	user := cniinstall.Handler{ConfDir: n.conf, KeepConf: true}
	changes, err := i.Journal.CheckUndo(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + n.plugin("extra")}, changes)
	require.NoError(t, i.Journal.Undo(t.Context(), user))
	require.Equal(t, kept, tree(t, n.conf))
	require.FileExists(t, n.plugin("cilium-cni"), "the configuration names it")
	require.NoFileExists(t, n.plugin("extra"))
	changes, err = i.Journal.CheckUndo(t.Context(), user)
	require.NoError(t, err)
	require.Empty(t, changes)

	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

// The user's own configuration at our path was never ours, so it stays.
func TestCNI8_UserManagedConfiguration(t *testing.T) {
	n := newNode(t)
	write(t, n.confFile(), "the user's", 0o644)
	n.ownLoopback()
	before := tree(t, n.root)
	i := n.install()
	i.Config = nil
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.confFile(), "the user's", 0o644)
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))

	i = n.install() // ours, which the user has edited
	require.NoError(t, os.Remove(n.confFile()))
	require.NoError(t, i.Apply(t.Context()))
	write(t, n.confFile(), agentConf+"\n", 0o600)
	require.ErrorContains(t, i.Revert(t.Context()), n.confFile()+" is no longer as it was left, so it is kept")
	requireContent(t, n.confFile(), agentConf+"\n", 0o600)
}

// An older pod's late uninstall does nothing, even with files set aside.
func TestCNI8_LateUninstallLeavesWhatIsSetAside(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	older := n.ownedBy("pod-1", n.exclusive())
	require.NoError(t, older.Apply(t.Context()))
	newer := n.ownedBy("pod-2", n.exclusive())
	require.NoError(t, newer.Apply(t.Context()))
	now := tree(t, n.root)
	require.ErrorIs(t, older.Revert(t.Context()), journal.ErrNotOwner)
	require.Equal(t, now, tree(t, n.root))
	require.NoError(t, newer.Revert(t.Context()))
	require.NoError(t, os.RemoveAll(n.state)) // it records the node's owner
	require.Equal(t, before, tree(t, n.root))
}
