// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// awsVersion is version v of the provider's configuration.
func awsVersion(v int) string { return strings.Replace(awsConf, "9001", fmt.Sprint(v), 1) }

// chained is an installation that joins the provider's network, whose plugins are on the node.
func (n node) chained(exclusive bool) recorded {
	for _, plugin := range []string{"aws-cni", "portmap"} {
		write(n.t, n.plugin(plugin), script("0.4.0"), 0o755)
	}
	i := n.install()
	i.Exclusive, i.Config = exclusive, chainedOf(cniinstall.Chained{Network: "*"})
	return i
}

// requireJoined checks that one Apply converges, and that it joined version v of the provider's
// configuration.
func requireJoined(t *testing.T, n node, i recorded, v int) {
	t.Helper()
	requireApplied(t, i, n.root)
	name := i.ConfName
	if name == "" {
		name = "05-cilium.conflist"
	}
	list, err := libcni.NetworkConfFromFile(n.other(name))
	require.NoError(t, err)
	require.Equal(t, []string{"aws-cni", "portmap", "cilium-cni"}, plugins(list))
	require.Equal(t, fmt.Sprint(v), option(t, list, 0, "mtu"))
}

// Backups made by another program or an earlier installation exist: the provider's current
// version is the one joined.
func TestCNI4_CNI5_OlderBackupsAreNotJoined(t *testing.T) {
	const live, backup = "10-aws.conflist", "10-aws.conflist.cilium_bak"
	for name, older := range map[string][]string{
		"one": {backup}, "a later number": {backup + ".2"},
		"many": {backup, backup + ".1", backup + ".2", backup + ".3", backup + ".4", backup + ".5", backup + ".6", backup + ".7", backup + ".8", backup + ".9"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.ownLoopback()
			i := n.chained(true)
			write(t, n.other(live), awsVersion(2), 0o644)
			for _, name := range older {
				write(t, n.other(name), awsVersion(1), 0o644)
			}
			before := tree(t, n.root)
			if name == "one" { // nothing is recorded
				i.Book = nil
			}
			requireJoined(t, n, i, 2)
			for _, v := range []int{3, 3, 2} {
				write(t, n.other(live), awsVersion(v), 0o644)
				before[n.other(live)] = tree(t, n.conf)[n.other(live)]
				requireJoined(t, n, i, v)
			}
			if i.Book != nil {
				requireUndone(t, i, n, before)
			}
		})
	}
}

// Our backup was edited and the provider has written its file again, or the suffix has changed
// since.
func TestCNI4_CNI5_LastBackupIsJoined(t *testing.T) {
	n := newNode(t)
	i := n.chained(true)
	write(t, n.other("10-aws.conflist"), awsVersion(1), 0o644)
	requireJoined(t, n, i, 1)
	write(t, n.other("10-aws.conflist.cilium_bak"), awsVersion(7), 0o644)
	write(t, n.other("10-aws.conflist"), awsVersion(1), 0o644)
	requireJoined(t, n, i, 1)
	require.FileExists(t, n.other("10-aws.conflist.cilium_bak.1"))
	i.BackupSuffix = ".aside"
	requireJoined(t, n, i, 1)
	write(t, n.other("10-aws.conflist"), awsVersion(2), 0o644)
	requireJoined(t, n, i, 2)
}

// The provider's file is broken: its older version, which was set aside, is not joined again,
// and nothing changes until the file is valid.
func TestCNI4_CNI5_BrokenFileIsWaitedFor(t *testing.T) {
	n := newNode(t)
	i := n.chained(true)
	write(t, n.other("10-aws.conflist"), awsVersion(1), 0o644)
	requireJoined(t, n, i, 1)
	write(t, n.other("10-aws.conflist"), "{", 0o644)
	before := tree(t, n.root)
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrTargetMissing)
	require.Equal(t, before, tree(t, n.root))
	write(t, n.other("10-aws.conflist"), awsVersion(2), 0o644)
	requireJoined(t, n, i, 2)
}

// The next owner uses another name for our file: the older one still counts as ours, live or
// set aside, while the provider keeps writing new versions.
func TestCNI4_CNI5_OursOfAnEarlierNameIsNotJoined(t *testing.T) {
	for later, exclusive := range map[string]bool{"04-agent.conflist": true, "07-agent.conflist": false} {
		t.Run(later, func(t *testing.T) {
			n := newNode(t)
			n.ownLoopback()
			a, b := n.chained(exclusive), n.chained(exclusive)
			b.ConfName = later
			write(t, n.other("10-aws.conflist"), awsVersion(1), 0o644)
			before := tree(t, n.root)
			for _, i := range []recorded{a, b, a, b} {
				requireJoined(t, n, i, 1)
			}
			write(t, n.other("10-aws.conflist"), awsVersion(2), 0o644)
			before[n.other("10-aws.conflist")] = tree(t, n.conf)[n.other("10-aws.conflist")]
			requireJoined(t, n, b, 2)
			requireUndone(t, b, n, before)
		})
	}
}

// Our file took the provider's place for a while. The provider's is the one joined and the one
// restored.
func TestCNI4_CNI5_OursWasInTheirPlace(t *testing.T) {
	n := newNode(t)
	n.ownLoopback()
	a, b := n.chained(true), n.chained(true)
	write(t, n.other("10-aws.conflist"), awsVersion(1), 0o644)
	before := tree(t, n.root)
	requireJoined(t, n, b, 1)
	a.ConfName, a.Config = "10-aws.conflist", agentOf(cniinstall.Agent{})
	for range 3 { // no needless backup is made
		requireApplied(t, a, n.root)
		requireJoined(t, n, b, 1)
		require.NoFileExists(t, n.other("10-aws.conflist.cilium_bak.2"))
	}
	write(t, n.other("10-aws.conflist"), awsVersion(2), 0o644)
	before[n.other("10-aws.conflist")] = tree(t, n.conf)[n.other("10-aws.conflist")]
	requireJoined(t, n, b, 2)
	require.NoError(t, os.Remove(n.confFile()))
	requireJoined(t, n, b, 2)
	requireUndone(t, b, n, before)
}
