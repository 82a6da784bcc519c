// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// exclusive is the agent's installation as the node's only configuration.
func (n node) exclusive() recorded {
	i := n.install()
	i.Exclusive = true
	return i
}

func (n node) other(name string) string { return filepath.Join(n.conf, name) }

// others writes configurations of other CNIs that sort before and after ours, and files that no
// runtime loads.
func (n node) others() {
	write(n.t, n.other("00-multus.conf"), `{"name":"multus","type":"multus"}`, 0o600)
	write(n.t, n.other("01-broken.conflist"), "{", 0o644)
	write(n.t, n.other("10-aws.conflist"), awsConf, 0o644)
	write(n.t, n.other("99-loopback.json"), `{"name":"lo","type":"loopback"}`, 0o640)
	write(n.t, n.other("README"), "not loaded", 0o644)
	write(n.t, n.other("10-aws.conflist.old"), "not loaded", 0o644)
	require.NoError(n.t, os.MkdirAll(n.other("50-dir.conf"), 0o755))
	n.ownLoopback()
}

// requireReverted checks that Revert does what CheckRevert announced and restores before,
// including times, because a file that was set aside comes back as the same inode.
func requireReverted(t *testing.T, i recorded, n node, before map[string]string, want ...string) {
	t.Helper()
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, changes)
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

func TestCNI5_SetAsideAndBack(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	i := n.exclusive()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"write " + n.plugin("cilium-cni"), "write " + n.confFile(),
		"set aside " + n.other("99-loopback.json") + " as 99-loopback.json.cilium_bak",
		"set aside " + n.other("10-aws.conflist") + " as 10-aws.conflist.cilium_bak",
		"set aside " + n.other("01-broken.conflist") + " as 01-broken.conflist.cilium_bak",
		"set aside " + n.other("00-multus.conf") + " as 00-multus.conf.cilium_bak",
	}, changes)
	require.Equal(t, before, tree(t, n.root), "Check changes nothing")

	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	after := tree(t, n.root)
	for _, name := range []string{"00-multus.conf", "01-broken.conflist", "10-aws.conflist", "99-loopback.json"} {
		require.NotContains(t, after, n.other(name))
		require.Equal(t, before[n.other(name)], after[n.other(name)+".cilium_bak"])
	}
	for _, name := range []string{"README", "10-aws.conflist.old", "50-dir.conf"} {
		require.Equal(t, before[n.other(name)], after[n.other(name)])
	}
	requireReverted(t, i, n, before,
		"restore "+n.other("00-multus.conf"), "restore "+n.other("01-broken.conflist"),
		"restore "+n.other("10-aws.conflist"), "restore "+n.other("99-loopback.json"),
		"remove file "+n.confFile(), "remove file "+n.plugin("cilium-cni"))
}

// An existing backup stays as it is: the new one gets a number.
func TestCNI5_NeverOverABackup(t *testing.T) {
	n := newNode(t)
	n.others()
	write(t, n.other("10-aws.conflist.cilium_bak"), "an earlier one", 0o600)
	require.NoError(t, os.Symlink("nowhere", n.other("10-aws.conflist.cilium_bak.1")))
	require.NoError(t, os.Mkdir(n.other("99-loopback.json.cilium_bak"), 0o700))
	before := tree(t, n.root)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	after := tree(t, n.root)
	require.Equal(t, before[n.other("10-aws.conflist.cilium_bak")], after[n.other("10-aws.conflist.cilium_bak")])
	require.Equal(t, before[n.other("10-aws.conflist")], after[n.other("10-aws.conflist.cilium_bak.2")])
	require.Equal(t, before[n.other("99-loopback.json")], after[n.other("99-loopback.json.cilium_bak.1")])
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

// Without a record nothing is restored automatically, but no backup is lost.
func TestCNI5_WithoutState(t *testing.T) {
	n := newNode(t)
	n.state = ""
	n.others()
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	write(t, n.other("10-aws.conflist"), "again", 0o644)
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	requireContent(t, n.other("10-aws.conflist.cilium_bak"), awsConf, 0o644)
	requireContent(t, n.other("10-aws.conflist.cilium_bak.1"), "again", 0o644)
}

func TestCNI5_SymbolicLinks(t *testing.T) {
	n := newNode(t)
	n.others()
	write(t, n.root+"/elsewhere/aws", awsConf, 0o644)
	require.NoError(t, os.Symlink("../../../elsewhere/aws", n.other("15-link.conflist")))
	require.NoError(t, os.Symlink("missing", n.other("16-dangling.conflist")))
	before := tree(t, n.root)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.Equal(t, "-> missing", tree(t, n.root)[n.other("16-dangling.conflist.cilium_bak")])
	require.NoError(t, os.Remove(n.other("16-dangling.conflist.cilium_bak")))
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

// A plugin chained onto a configuration that is also set aside finds its target on every run,
// and follows it when its owner rewrites it.
func TestCNI5_CNI4_ChainedAndExclusive(t *testing.T) {
	for _, target := range []string{"*", "cbr0"} {
		n := newNode(t)
		n.source("cilium-cni", script("0.3.0"))
		write(t, n.plugin("bridge"), script("0.3.0"), 0o755)
		write(t, n.other("20-bridge.conf"), singleConf, 0o644)
		n.ownLoopback()
		before := tree(t, n.root)
		i := n.exclusive()
		i.Config = chainedOf(cniinstall.Chained{Target: target})
		require.NoError(t, i.Apply(t.Context()))
		requireConverged(t, i, n.root)
		newer := strings.Replace(singleConf, "10.0.0.0/24", "10.1.0.0/16", 1)
		write(t, n.other("20-bridge.conf"), newer, 0o644)
		before[n.other("20-bridge.conf")] = tree(t, n.conf)[n.other("20-bridge.conf")]
		require.NoError(t, i.Apply(t.Context()))
		requireConverged(t, i, n.root)
		raw, err := os.ReadFile(n.confFile())
		require.NoError(t, err)
		require.Contains(t, string(raw), "10.1.0.0/16")
		require.NoError(t, i.Revert(t.Context()))
		require.Equal(t, before, tree(t, n.root))
	}
}

func TestCNI5_Suffix(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	i := n.exclusive()
	i.BackupSuffix = ".conf.aside"
	i.Config = chainedOf(cniinstall.Chained{Target: "aws-cni"})
	for _, plugin := range []string{"aws-cni", "portmap"} {
		write(t, n.plugin(plugin), script("0.4.0"), 0o755)
		before[n.plugin(plugin)] = tree(t, n.bin)[n.plugin(plugin)]
	}
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.FileExists(t, n.other("10-aws.conflist.conf.aside"))
	i.BackupSuffix = "" // the suffix is in the record
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))

	for _, suffix := range []string{".conf", ".x.json", ".conflist", "bak", ".", "./bak", "..", ".bak."} {
		i := n.exclusive()
		i.BackupSuffix = suffix
		require.ErrorContains(t, i.Apply(t.Context()), "backup suffix", suffix)
	}
	i = n.exclusive()
	i.Config = nil
	require.ErrorContains(t, i.Apply(t.Context()), "no CNI configuration given to be the only one")
	require.Equal(t, before, tree(t, n.root))
}

// Our configuration had another name before: the older file is removed and not restored.
func TestCNI5_OursOfAnOlderName(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	older := n.exclusive()
	older.ConfName = "04-cilium.conflist"
	require.NoError(t, older.Apply(t.Context()))
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	require.NoFileExists(t, n.other("04-cilium.conflist"))
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root))
}

// Our configuration takes the name of one that was set aside.
func TestCNI5_OursInTheirPlace(t *testing.T) {
	n := newNode(t)
	n.others()
	before := withoutTimes(t, n)
	require.NoError(t, n.exclusive().Apply(t.Context()))
	i := n.exclusive()
	i.ConfName = "10-aws.conflist"
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	requireContent(t, n.other("10-aws.conflist"), agentConf, 0o600)
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, withoutTimes(t, n))
	require.NoDirExists(t, n.state)
}

func TestCNI5_Conform(t *testing.T) {
	n := newNode(t)
	n.others()
	bootstraptest.Conform(t, func() bootstrap.Action { return n.exclusive().Install }, cniinstall.Handler{ConfDir: n.conf})
}

// Cancelled at every check of the context, then run again, then reverted: the node is as
// before.
func TestCNI5_CancelledAnywhere(t *testing.T) {
	for at := 0; ; at++ {
		n := newNode(t)
		n.others()
		before := tree(t, n.root)
		i := n.exclusive()
		err := i.Apply(&cancelAt{Context: t.Context(), n: at})
		requireNoTemp(t, n.root)
		if at%2 == 0 && err != nil {
			require.NoError(t, i.Apply(t.Context()))
			requireConverged(t, i, n.root)
		}
		for undo := 0; i.Revert(&cancelAt{Context: t.Context(), n: undo}) != nil; undo++ {
			require.Less(t, undo, 100)
		}
		require.Equal(t, before, tree(t, n.root))
		if err == nil {
			require.Greater(t, at, 8, "the context was checked often")
			return
		}
	}
}

// Many owners in turn, while the other CNI keeps rewriting its file.
func TestCNI8_ManyOwnersGiveBackTheOriginal(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	big := strings.Repeat("0123456789abcdef", 8<<20>>4)
	write(t, n.plugin("cilium-cni"), big, 0o711)
	before[n.plugin("cilium-cni")] = ""
	i := n.exclusive()
	for k := range 150 {
		n.source("cilium-cni", script("0.3.1", "1.0.0")+strings.Repeat("#", k%7))
		i = n.ownedBy(fmt.Sprint("pod-", k), i)
		i.Config = agentOf(cniinstall.Agent{Debug: k%2 == 0})
		require.NoError(t, i.Apply(t.Context()))
		if k%50 == 0 {
			write(t, n.other("99-loopback.json"), strings.Repeat("x", k), 0o640)
			before[n.other("99-loopback.json")] = tree(t, n.conf)[n.other("99-loopback.json")]
			require.NoError(t, i.Apply(t.Context()))
		}
	}
	requireBeside(t, n.state, int64(len(big)))
	n.source("cilium-cni", script("0.3.1", "0.4.0", "1.0.0"))
	require.NoError(t, i.Revert(t.Context()))
	requireContent(t, n.plugin("cilium-cni"), big, 0o711)
	require.Empty(t, journaltest.Entries(t, i.Journal))
	require.NoError(t, os.RemoveAll(n.state)) // it records the node's owner
	after := tree(t, n.root)
	after[n.plugin("cilium-cni")] = ""
	for _, source := range []map[string]string{before, after} { // the file was rewritten
		delete(source, filepath.Join(n.src, "cilium-cni"))
	}
	require.Equal(t, before, after)
}

// requireBeside checks that exactly one blob of that size lies beside the record, and that the
// record holds none of its content.
func requireBeside(t *testing.T, state string, size int64) {
	t.Helper()
	files, err := os.ReadDir(state)
	require.NoError(t, err)
	beside := 0
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		if f.Name() == "agent.journal" {
			require.Less(t, info.Size(), int64(64<<10)) // owners and obsolete records
		} else if info.Size() == size {
			beside++
		}
		require.Zero(t, info.Mode().Perm()&0o077)
	}
	require.Equal(t, 1, beside)
}

// A configuration that is recorded comes back, also before another network: it was read first
// before the agent came. If its plugins are gone meanwhile, it stays aside, and nothing waits
// for it.
func TestCLN12_WhatIsRecordedComesBackUnlessItsPluginsAreMissing(t *testing.T) {
	n := newNode(t)
	write(t, n.other("00-multus.conf"), `{"name":"multus","type":"multus"}`, 0o600)
	write(t, n.other("10-aws.conflist"), awsConf, 0o644)
	write(t, n.plugin("multus"), "plugin", 0o755)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	left := n.other("10-aws.conflist.cilium_bak")
	undo := cniinstall.Handler{ConfDir: n.conf, PluginDirs: []string{filepath.Join(n.root, "none"), n.bin}}

	changes, err := i.Journal.CheckUndo(t.Context(), undo)
	require.NoError(t, err)
	require.NoError(t, i.Journal.Undo(t.Context(), undo))
	says := "leave " + n.other("10-aws.conflist") + " set aside: no network works by it without aws-cni, portmap, not found where the runtime looks; mv " + left + " " + n.other("10-aws.conflist") + " restores it"
	require.Contains(t, changes, says)
	require.FileExists(t, n.other("00-multus.conf"))
	requireContent(t, left, awsConf, 0o644)
	require.NoFileExists(t, n.other("10-aws.conflist"))
	require.NoFileExists(t, n.confFile())
	require.NoFileExists(t, n.plugin("cilium-cni"))

	require.NoError(t, os.Remove(n.other("00-multus.conf"))) // for which loopback stays
	require.NoError(t, i.Journal.Undo(t.Context(), undo))
	require.NoDirExists(t, n.state, "nothing is recorded any more")
	requireContent(t, left, awsConf, 0o644)
}
