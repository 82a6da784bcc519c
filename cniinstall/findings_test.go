// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cniinstall"
)

// The agent will write the configuration itself: the findings before it has done so.
func TestRDY8_FindingsOfAConfigurationThatAnotherWrites(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.Config, i.Plugins = nil, nil
	found := func() (texts []string) {
		t.Helper()
		before := tree(t, n.root)
		findings, err := i.Findings(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, tree(t, n.root))
		for _, finding := range findings {
			require.Regexp(t, `\S \([^()]+\)$`, finding.Error(), "the remedy")
			texts = append(texts, bootstrap.Code(finding)+" "+finding.Error())
		}
		return texts
	}
	require.Empty(t, found(), "the directory does not exist")

	write(t, n.other("10-other.conflist"), `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"other-cni"},{"type":"elsewhere"}]}`, 0o644)
	i.Vouched = []string{"elsewhere"}
	require.Len(t, found(), 1)
	require.Contains(t, found()[0], "cni.plugin-missing pods get no network by "+n.other("10-other.conflist")+", which sorts first: plugin missing: other-cni is not in ")

	i.Vouched = append(i.Vouched, "other-cni")
	require.Empty(t, found(), "it sorts after the agent's, and no plugin is missing")

	write(t, n.other("00-torn.conflist"), `{"name":"torn","plugins":[`, 0o644)
	write(t, n.other("01-multus.conf"), `{"name":"multus-net","type":"multus","cniVersion":"0.3.1"}`, 0o644)
	require.Len(t, found(), 2)
	require.Contains(t, found()[0], "cni.preceded "+n.other("00-torn.conflist")+" is invalid and sorts before 05-cilium.conflist: containerd loads no network while it is there")
	require.Contains(t, found()[1], "cni.preceded "+n.other("01-multus.conf")+` sorts before 05-cilium.conflist: containerd uses its network "multus-net", CRI-O passes it over: plugin missing: multus is not in `)
	i.Runtime.CRIO.DefaultNetwork = "other"
	require.Empty(t, found(), "CRI-O uses neither, nor the torn one")
	i.Runtime.CRIO.DefaultNetwork = "multus-net"
	require.Len(t, found(), 1)

	i = n.install()
	i.Exclusive = true
	require.NoError(t, os.Remove(n.other("10-other.conflist")))
	write(t, n.other("01-multus.conf"), `{"name":"multus-net","type":"cilium-cni","cniVersion":"0.3.1"}`, 0o644)
	require.Empty(t, found(), "all of them are set aside, and the plugin is about to be installed")
	_, err := cniinstall.Install{ConfDir: "relative"}.Findings(t.Context())
	require.Error(t, err)
}
