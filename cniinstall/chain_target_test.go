// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
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
func TestCNI4_CNI5_TheProvidersConfigurationIsJoinedAlsoAfterOursTookItsPlace(t *testing.T) {
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

// Two agents join the network that is there, each with a file of its own, by any name or by the
// network's: what changes is the primary's, for both, and when that goes, neither goes on.
func TestCNI4_TwoAgentsJoinThePrimary(t *testing.T) {
	for name, network := range map[string]string{"any": "*", "by name": "aws-cni"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.ownLoopback()
			a := n.chained(false)
			a.ConfName, a.Config = "02-a", cniinstall.Chained{Network: network, Plugin: json.RawMessage(`{"type":"cilium-cni"}`)}
			b, err := (&ledger.Ledger{Dir: n.state, Agent: "b", NoOwner: true, Kinds: cniinstall.Uninstall{ConfDir: n.conf}.Kinds()}).Open(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { b.Close() })
			other := recorded{Install: a.Install, Book: b}
			other.Plugins, other.ConfName, other.Config = nil, "05-b", cniinstall.Chained{Network: network, Plugin: json.RawMessage(`{"type":"acme"}`)}
			write(t, n.plugin("acme"), script("0.4.0"), 0o755)
			types := func(name string) (types []string, mtu any) {
				list, err := libcni.NetworkConfFromFile(n.other(name))
				require.NoError(t, err)
				return plugins(list), option(t, list, 0, "mtu")
			}
			for v := range 3 {
				write(t, n.other("10-aws.conflist"), awsVersion(v), 0o644)
				for range 2 {
					require.NoError(t, a.Apply(t.Context()))
					require.NoError(t, other.Apply(t.Context()))
				}
				requireConverged(t, a, n.conf)
				requireConverged(t, other, n.conf)
				for file, plugin := range map[string]string{"02-a.conflist": "cilium-cni", "05-b.conflist": "acme"} {
					got, mtu := types(file)
					require.Equal(t, []string{"aws-cni", "portmap", plugin}, got)
					require.Equal(t, fmt.Sprint(v), mtu)
				}
			}
			require.NoError(t, os.Remove(n.other("10-aws.conflist")))
			require.ErrorIs(t, a.Apply(t.Context()), cniinstall.ErrTargetMissing)
			require.ErrorIs(t, other.Apply(t.Context()), cniinstall.ErrTargetMissing)
		})
	}
}

// Without a record, a file that has our plugin is made from another one of its network.
func TestCNI4_AFileWithOurPluginIsFollowed(t *testing.T) {
	dir := t.TempDir()
	chained := cniinstall.Chained{Plugin: json.RawMessage(`{"type":"acme"}`)}
	write(t, filepath.Join(dir, "05-b.conflist"), `{"name":"k8s","plugins":[{"type":"old"},{"type":"acme"},{"type":"mesh"}]}`, 0o644)
	write(t, filepath.Join(dir, "10-k8s.conf"), `{"name":"k8s","type":"newer"}`, 0o644)
	raw, err := chained.Render(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, string(raw), "newer")
	require.NoError(t, os.Remove(filepath.Join(dir, "10-k8s.conf")))
	raw, err = chained.Render(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, string(raw), "old", "an earlier installer has put it there")
}

func TestCNI6_TheConfigurationsOfADirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "20-k8s.conflist"), `{"name":"k8s","plugins":[{"type":"calico"},{"type":"portmap"}]}`, 0o644)
	write(t, filepath.Join(dir, "10-broken.conf"), `{"name":"k8s","plugins":[]}`, 0o644)
	write(t, filepath.Join(dir, "20-k8s.conflist.bak"), `{`, 0o644)
	all, err := cniinstall.Configs(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.ErrorIs(t, all[0].Err, cniinstall.ErrInvalid)
	require.Equal(t, cniinstall.Conf{File: "20-k8s.conflist", Network: "k8s", Plugins: []string{"calico", "portmap"}, Raw: []byte(read(t, filepath.Join(dir, "20-k8s.conflist")))}, all[1])
}

// A name without a suffix follows the content.
func TestCNI4_TheNameFollowsTheContent(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.ConfName, i.Config = "05-acme", cniinstall.Whole(`{"cniVersion":"1.0.0","name":"a","plugins":[{"type":"cilium-cni"}]}`)
	requireApplied(t, i, n.root)
	require.FileExists(t, n.other("05-acme.conflist"))
	i.Config = cniinstall.Whole(`{"cniVersion":"1.0.0","name":"a","type":"cilium-cni"}`)
	requireApplied(t, i, n.root)
	require.FileExists(t, n.other("05-acme.conf"))
	require.NoFileExists(t, n.other("05-acme.conflist"))
	write(t, n.other("05-acme-first.conf"), singleConf, 0o644)
	require.Contains(t, strings.Join(n.advice(i), "\n"), "05-acme-first.conf sorts before 05-acme.conf")
	i.ConfName = "05-acme.txt"
	require.ErrorContains(t, i.Apply(t.Context()), "no runtime loads it")
}
