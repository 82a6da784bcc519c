// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a rendered configuration with a file and parses it with libcni.
func golden(t *testing.T, name string, got []byte) *libcni.NetworkConfigList {
	t.Helper()
	path := filepath.Join("testdata", name+".conflist")
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	list, err := libcni.NetworkConfFromBytes(got)
	require.NoError(t, err)
	return list
}

func plugins(list *libcni.NetworkConfigList) (types []string) {
	for _, p := range list.Plugins {
		types = append(types, p.Network.Type)
	}
	return types
}

// option is the value under key of the plugin at index in the list.
func option(t *testing.T, list *libcni.NetworkConfigList, index int, key string) any {
	t.Helper()
	var plugin map[string]any
	require.NoError(t, json.Unmarshal(list.Plugins[index].Bytes, &plugin))
	return plugin[key]
}

const quotes = `it's "quoted"`

func TestCNI3_TemplatesGolden(t *testing.T) {
	tests := []struct {
		name  string
		agent cniinstall.Agent
		net   string
		types []string
		at    int // the agent's plugin
		mode  any
	}{
		{"agent-zero", agentOf(cniinstall.Agent{}), "cilium", []string{"cilium-cni"}, 0, nil},
		{"agent-all", cniinstall.Agent{Network: "net-1", CNIVersion: "1.0.0", Plugin: "my-cni", Debug: true, LogFile: "/var/log/my.log"},
			"net-1", []string{"my-cni"}, 0, nil},
		{"agent-quotes", agentOf(cniinstall.Agent{LogFile: "/var/log/it's \"quoted\" <&> \\ \n\u2028.log"}), "cilium", []string{"cilium-cni"}, 0, nil},
		{"template-none", agentOf(cniinstall.Agent{Mode: "none"}), "cilium", []string{"cilium-cni"}, 0, nil},
		{"template-portmap", agentOf(cniinstall.Agent{Mode: "portmap"}), "portmap", []string{"cilium-cni", "portmap"}, 0, nil},
		{"template-flannel", agentOf(cniinstall.Agent{Mode: "flannel"}), "flannel", []string{"flannel", "portmap", "cilium-cni"}, 2, "flannel"},
		{"template-aws-cni", agentOf(cniinstall.Agent{Mode: "aws-cni"}), "aws-cni", []string{"aws-cni", "portmap", "cilium-cni"}, 2, "aws-cni"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "template") {
				tt.agent.LogFile = "/var/log/" + quotes
			}
			got, err := tt.agent.Render(t.Context())
			require.NoError(t, err)
			list := golden(t, tt.name, got)
			require.Equal(t, tt.net, list.Name)
			require.Equal(t, tt.types, plugins(list))
			require.Equal(t, tt.mode, option(t, list, tt.at, "chaining-mode"))
			require.Equal(t, tt.agent.LogFile, option(t, list, tt.at, "log-file"), "the value is unchanged by quoting")
		})
	}
}

func TestCNI3_TemplatesThatCannotBe(t *testing.T) {
	tests := map[string]struct {
		agent cniinstall.Agent
		want  string
	}{
		"unknown":    {agentOf(cniinstall.Agent{Mode: quotes}), `unknown mode "it's \"quoted\"", known are ["none" "portmap" "flannel" "aws-cni" "generic-veth"]`},
		"no plugin":  {cniinstall.Agent{Network: "n"}, "no agent plugin given"},
		"no network": {cniinstall.Agent{Plugin: "p"}, "no network name given"},
		"no base":    {agentOf(cniinstall.Agent{Mode: "generic-veth"}), "mode generic-veth completes other plugins"},
		"not UTF-8":  {agentOf(cniinstall.Agent{LogFile: "\xff"}), `"\xff" is not UTF-8`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tt.agent.Render(t.Context())
			require.ErrorContains(t, err, "render the CNI configuration: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
}
