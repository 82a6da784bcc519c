// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
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
	requireUndone(t, i, n, before)
}

// An existing backup stays as it is, whatever it is: the new one gets a number.
func TestCNI5_SetAsideAndBack(t *testing.T) {
	n := newNode(t)
	n.others()
	require.NoError(t, os.Symlink("missing", n.other("16-dangling.conflist")))
	write(t, n.other("10-aws.conflist.cilium_bak"), "an earlier one", 0o600)
	require.NoError(t, os.Symlink("nowhere", n.other("10-aws.conflist.cilium_bak.1")))
	require.NoError(t, os.Mkdir(n.other("99-loopback.json.cilium_bak"), 0o700))
	before := tree(t, n.root)
	i := n.exclusive()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"write file " + n.plugin("cilium-cni"), "write file " + n.confFile(),
		"set aside " + n.other("99-loopback.json") + " as 99-loopback.json.cilium_bak.1",
		"set aside " + n.other("16-dangling.conflist") + " as 16-dangling.conflist.cilium_bak",
		"set aside " + n.other("10-aws.conflist") + " as 10-aws.conflist.cilium_bak.2",
		"set aside " + n.other("01-broken.conflist") + " as 01-broken.conflist.cilium_bak",
		"set aside " + n.other("00-multus.conf") + " as 00-multus.conf.cilium_bak",
	}, changes)
	require.Equal(t, before, tree(t, n.root), "Check changes nothing")

	requireApplied(t, i, n.root)
	after := tree(t, n.root)
	for name, number := range map[string]string{"00-multus.conf": "", "01-broken.conflist": "", "10-aws.conflist": ".2", "16-dangling.conflist": "", "99-loopback.json": ".1"} {
		require.NotContains(t, after, n.other(name))
		require.Equal(t, before[n.other(name)], after[n.other(name)+".cilium_bak"+number])
	}
	for _, name := range []string{"README", "10-aws.conflist.old", "50-dir.conf", "10-aws.conflist.cilium_bak", "10-aws.conflist.cilium_bak.1"} {
		require.Equal(t, before[n.other(name)], after[n.other(name)])
	}
	requireReverted(t, i, n, before,
		"write file "+n.other("00-multus.conf"), "write file "+n.other("01-broken.conflist"),
		"write file "+n.other("10-aws.conflist"), "write file "+n.other("16-dangling.conflist"), "write file "+n.other("99-loopback.json"),
		"remove file "+n.confFile(), "remove file "+n.plugin("cilium-cni"))
}

func TestCNI5_Suffix(t *testing.T) {
	n := newNode(t)
	n.others()
	before := tree(t, n.root)
	i := n.exclusive()
	i.BackupSuffix = ".conf.aside"
	i.Config = chainedOf(cniinstall.Chained{Network: "aws-cni"})
	for _, plugin := range []string{"aws-cni", "portmap"} {
		write(t, n.plugin(plugin), script("0.4.0"), 0o755)
		before[n.plugin(plugin)] = tree(t, n.bin)[n.plugin(plugin)]
	}
	requireApplied(t, i, n.root)
	require.FileExists(t, n.other("10-aws.conflist.conf.aside"))
	i.BackupSuffix = "" // the suffix is in the record
	requireUndone(t, i, n, before)

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
	undo := recorded{Install: i.Install, Book: n.book(cniinstall.Uninstall{PluginDirs: []string{filepath.Join(n.root, "none"), n.bin}})}

	changes, err := undo.CheckRevert(t.Context())
	require.NoError(t, err)
	require.NoError(t, undo.Revert(t.Context()))
	says := "leave " + n.other("10-aws.conflist") + " as it is: no network works by it without aws-cni, portmap, not found where the runtime looks; mv " + left + " " + n.other("10-aws.conflist") + " restores it"
	require.Contains(t, changes, says)
	require.FileExists(t, n.other("00-multus.conf"))
	requireContent(t, left, awsConf, 0o644)
	require.NoFileExists(t, n.other("10-aws.conflist"))
	require.NoFileExists(t, n.confFile())
	require.NoFileExists(t, n.plugin("cilium-cni"))

	require.NoError(t, os.Remove(n.other("00-multus.conf"))) // for which loopback stays
	require.NoError(t, undo.Revert(t.Context()))
	require.NoDirExists(t, n.state, "nothing is recorded any more")
	requireContent(t, left, awsConf, 0o644)
}

// A configuration that the user has taken over is kept with the plugins it names; a revert that
// no longer keeps it removes all of them.
func TestCNI8_AConfigurationThatTheUserKeepsKeepsItsPlugins(t *testing.T) {
	n := newNode(t)
	n.others()
	n.source("extra", script("0.3.1", "1.0.0"))
	before := tree(t, n.root)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	kept := tree(t, n.conf)

	user := recorded{Install: i.Install, Book: n.book(cniinstall.Uninstall{KeepConf: true})}
	changes, err := user.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + n.plugin("extra")}, changes)
	require.NoError(t, user.Revert(t.Context()))
	require.Equal(t, kept, tree(t, n.conf))
	require.FileExists(t, n.plugin("cilium-cni"), "the configuration names it")
	require.NoFileExists(t, n.plugin("extra"))
	changes, err = user.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)

	requireUndone(t, i, n, before)
}
