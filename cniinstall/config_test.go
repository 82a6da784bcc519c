// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestCNI3_AgentGolden(t *testing.T) {
	tests := map[string]cniinstall.Agent{
		"agent-zero": {},
		"agent-all": {Network: "net-1", CNIVersion: "1.0.0", Plugin: "my-cni", Debug: true,
			LogFile: "/var/log/my.log"},
		"agent-quotes": {LogFile: "/var/log/it's \"quoted\" <&> \\ \n\u2028.log"},
	}
	for name, agent := range tests {
		t.Run(name, func(t *testing.T) {
			agent = agentOf(agent)
			got, err := agent.Render(t.Context(), "/etc/cni/net.d")
			require.NoError(t, err)
			golden := filepath.Join("testdata", name+".conflist")
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))

			list, err := libcni.NetworkConfFromBytes(got)
			require.NoError(t, err)
			require.Len(t, list.Plugins, 1)
			var plugin map[string]any
			require.NoError(t, json.Unmarshal(list.Plugins[0].Bytes, &plugin))
			if agent.LogFile != "" {
				require.Equal(t, agent.LogFile, plugin["log-file"], "the value is unchanged by quoting")
			}
		})
	}
}

func TestCNI3_QuotesInEveryOption(t *testing.T) {
	n := newNode(t)
	n.source(`a'b"c`, script("0.3.1", "1.0.0"))
	i := n.install()
	i.Config = agentOf(cniinstall.Agent{Plugin: `a'b"c`, LogFile: `/'"/log`})
	require.NoError(t, i.Apply(t.Context()))
	requireConverged(t, i, n.root)
	list, err := libcni.NetworkConfFromFile(n.confFile())
	require.NoError(t, err)
	require.Equal(t, `a'b"c`, list.Plugins[0].Network.Type)
	require.Contains(t, string(list.Plugins[0].Bytes), `"log-file":"/'\"/log"`)

	for _, agent := range []cniinstall.Agent{{Network: `n'"`}, {CNIVersion: `1.0'"`}} {
		i.Config = agentOf(agent)
		var invalid *cniinstall.InvalidError
		require.ErrorAs(t, i.Apply(t.Context()), &invalid)
	}
}

// Two plugins in a chain, one of them a cloud provider's: the user's configuration is published
// byte for byte, keeping order and spaces.
func TestCNI3_WholeIsPublishedAsItIs(t *testing.T) {
	const chain = "{ \"cniVersion\":\"0.3.1\",\n\t\"name\":\"generic-veth\", \"plugins\":[" +
		`{"type":"cloud-route","routeTable":1,"mtu":1500,"ipam":{"type":"cloud-ipam","backend":"127.0.0.1:61677"}},` +
		`{"chaining-mode":"generic-veth","type":"cilium-cni"}` + "]}\r\n"
	n := newNode(t)
	i := n.install()
	i.Config = cniinstall.Whole(chain)
	before := tree(t, n.root)
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrPluginMissing)
	require.Equal(t, before, tree(t, n.root))

	write(t, n.plugin("cloud-route"), script("0.3.1", "1.0.0"), 0o755) // the cloud provider's installer runs
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.confFile(), chain, 0o600)
	requireConverged(t, i, n.root)
}
