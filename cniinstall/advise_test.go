// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

func TestCNI6_Advise(t *testing.T) {
	n := newNode(t)
	i := n.install()
	require.Empty(t, n.advice(i), "the directory does not exist")
	write(t, n.other("00-dir.conflist/x"), "", 0o644)
	write(t, n.other("00-not-loaded.yaml"), "{", 0o644)
	write(t, n.other("05-cilium.conflist.conf"), "{", 0o644) // after ours
	write(t, n.other("10-aws.conflist"), awsConf, 0o644)
	write(t, n.other("11-broken.conflist"), "{", 0o644)
	require.Empty(t, n.advice(i))
	require.NoError(t, i.Apply(t.Context()))
	require.Empty(t, n.advice(i))

	write(t, n.other("00-multus.conf"), `{"name":"multus-net","type":"cilium-cni","cniVersion":"0.3.1"}`, 0o600)
	write(t, n.other("01-later.conflist"), `{"name":"later","cniVersion":"99","plugins":[{"type":"x"}]}`, 0o600)
	write(t, n.other("02-torn.conflist"), `{"name":"torn","plugins":[`, 0o644)
	write(t, n.other("03-empty.conf"), "", 0o644)
	write(t, n.other("04-list.conf"), awsConf, 0o644)
	write(t, n.other("04-none.conflist"), `{"name":"none"}`, 0o644)
	write(t, n.other("04-single.json"), `{"name":"single","type":"x"}`, 0o644)
	require.NoError(t, os.Symlink("missing", n.other("04-target.conf")))
	before := tree(t, n.root)
	invalid := func(name string) string {
		return n.other(name) + " is invalid and sorts before 05-cilium.conflist: containerd loads no network while it is there, CRI-O passes it over: "
	}
	first := func(name, network string) string {
		return n.other(name) + ` sorts before 05-cilium.conflist: containerd uses its network "` + network + `", CRI-O passes it over: plugin missing: `
	}
	require.Equal(t, []string{
		n.other("00-multus.conf") + ` sorts before 05-cilium.conflist: runtimes use its network "multus-net"`,
		first("01-later.conflist", "later") + "x is not in " + n.bin, // only noticed by containerd when a pod starts
		invalid("02-torn.conflist") + "error parsing configuration list: unexpected end of JSON input",
		invalid("03-empty.conf") + "error parsing configuration: unexpected end of JSON input",
		invalid("04-list.conf") + "error parsing configuration: missing 'type'",
		invalid("04-none.conflist") + "it has no plugins",
		first("04-single.json", "single") + "x is not in " + n.bin,
		invalid("04-target.conf") + "stat " + n.other("04-target.conf") + ": no such file or directory",
	}, n.advice(i))
	require.Equal(t, before, tree(t, n.root))

	i.Runtime.CRIO.DefaultNetwork = "cilium"
	require.Empty(t, n.advice(i), "CRI-O uses no network of another name")
	i.Runtime.CRIO.DefaultNetwork = "multus-net"
	_, wrong := i.Check(t.Context())
	require.ErrorIs(t, wrong, cniinstall.ErrInvalid, "nor ours then")
	require.ErrorContains(t, wrong, `no pod gets its network "cilium", since CRI-O's cni_default_network is "multus-net"`)
	i.Runtime.CRIO.DefaultNetwork = ""
	i.Exclusive = true
	require.Empty(t, n.advice(i), "Apply sets them aside")
	i.Exclusive, i.Config = false, nil
	require.Empty(t, n.advice(i), "no file could take precedence")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.install().Advise(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Error(t, second(cniinstall.Install{ConfDir: "relative"}.Advise(t.Context())))
}

func (n node) advice(i recorded) []string {
	n.t.Helper()
	advice, err := i.Advise(n.t.Context())
	require.NoError(n.t, err)
	return advice
}

func TestCNI8_OnlyTrueEnablesTheUninstall(t *testing.T) {
	for said, want := range map[string]bool{
		"true": true, "true\n": true, " true ": true,
		"": false, "false": false, "TRUE": false, "1": false, "true, but later": false,
	} {
		dir := t.TempDir() // laid out as a ConfigMap volume
		write(t, filepath.Join(dir, "..2026/cni-uninstall"), said, 0o644)
		require.NoError(t, os.Symlink("..2026", filepath.Join(dir, "..data")))
		require.NoError(t, os.Symlink("..data/cni-uninstall", filepath.Join(dir, "cni-uninstall")))
		got, err := cniinstall.UninstallEnabled(dir)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", said)
	}
	dir := t.TempDir()
	for _, missing := range []string{dir, filepath.Join(dir, "missing")} {
		got, err := cniinstall.UninstallEnabled(missing)
		require.NoError(t, err)
		require.False(t, got)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cni-uninstall"), 0o755))
	got, err := cniinstall.UninstallEnabled(dir)
	require.ErrorContains(t, err, "whether to uninstall CNI")
	require.False(t, got)
}
