// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

// list makes a list of plugins, each on its own line, starting at line 3.
func list(plugins ...string) string {
	return "{\"cniVersion\": \"0.3.1\", \"name\": \"n\",\n \"plugins\": [\n" + strings.Join(plugins, ",\n") + "\n]}\n"
}

const agentPlugin = `{"type": "cilium-cni"}`

// The error for an invalid configuration says where it is invalid, and nothing is touched: no
// plugin, no directory.
func TestCNI2_InvalidConfiguration(t *testing.T) {
	tests := []struct {
		name, file, conf, place, want string
	}{
		{"empty", "", "", ", line 1 column 1", "unexpected end of JSON input"},
		{"not JSON", "", "name: cilium\n", ", line 1 column 2", "invalid character 'a' in literal null"},
		{"cut off", "", list(agentPlugin)[:40], ", line 2 column 3", "unexpected end of JSON input"},
		{"a comma too many", "", list(agentPlugin, ""), ", line 5 column 1", "invalid character ']'"},
		{"two values", "", list(agentPlugin) + "{}", ", line 5 column 1", "after top-level value"},
		{"byte order mark", "", "\ufeff" + list(agentPlugin), ", line 1 column 1", "invalid character"},
		{"null", "", "null", "", "it is null, not an object"},
		{"an array", "", "[]", "", "it is a JSON array, not an object"},
		{"no plugins", "", `{"name":"n"}`, "", `it has no "plugins"`},
		{"plugins is an object", "", `{"name":"n","plugins":{}}`, "", `"plugins" is not an array`},
		{"plugins is empty", "", list(), "", `"plugins" is empty`},
		{"plugin without type", "", list(agentPlugin, ` {"Typ": "x"}`), ", plugins[1]", "missing 'type'"},
		{"plugin is null", "", list(agentPlugin, "null"), ", plugins[1]", "missing 'type'"},
		{"plugin is a string", "", list("\t\"x\""), ", plugins[0]", "cannot unmarshal string"},
		{"type is a number", "", list(`{"type": 1}`), ", plugins[0]", "cannot unmarshal number"},
		{"type is a path", "", list(agentPlugin, `{"type": "../../bin/sh"}`), ", plugins[1]", `type "../../bin/sh" is not a file name`},
		{"bad capabilities", "", list(`{"type": "x", "capabilities": ["y"]}`), ", plugins[0]", "cannot unmarshal array"},
		{"no name", "", `{"plugins":[` + agentPlugin + `]}`, "", "no name"},
		{"name is a number", "", `{"name":1,"plugins":[` + agentPlugin + `]}`, "", "invalid name type"},
		{"name is empty", "", `{"name":"","plugins":[` + agentPlugin + `]}`, "", `name "": missing network name`},
		{"name is not one", "", `{"name":"*","plugins":[` + agentPlugin + `]}`, "", `name "*": invalid characters`},
		{"version is a number", "", `{"name":"n","cniVersion":1,"plugins":[` + agentPlugin + `]}`, "", "invalid cniVersion type"},
		{"version is not one", "", `{"name":"n","cniVersion":"one","plugins":[` + agentPlugin + `]}`, "", `cniVersion "one"`},
		{"disableCheck", "", `{"name":"n","disableCheck":3,"plugins":[` + agentPlugin + `]}`, "", "disableCheck"},
		{"a plugin in a list's file", "a.conflist", `{"name":"n","type":"cilium-cni"}`, "", "belongs in a .conf file"},
		{"a list in a plugin's file", "a.conf", list(agentPlugin), "", "belongs in a .conflist file"},
		{"a list in a .json file", "a.json", list(agentPlugin), "", "belongs in a .conflist file"},
		{"no type in a plugin's file", "a.conf", `{"name":"n"}`, "", `it has no "type"`},
		{"single plugin without name", "a.conf", agentPlugin, "", "no name"},
		{"single plugin with bad type", "a.conf", `{"name":"n","type":"a/b"}`, "", `"a/b" is not a file name`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			before := tree(t, n.root)
			i := n.install()
			i.Config, i.ConfName = cniinstall.Whole(tt.conf), cmp.Or(tt.file, i.ConfName)
			for _, err := range []error{second(i.Check(t.Context())), i.Apply(t.Context())} {
				require.ErrorIs(t, err, cniinstall.ErrInvalid)
				require.Equal(t, "cni.config-invalid", code.Of(err))
				require.ErrorContains(t, err, "invalid CNI configuration "+i.ConfName+tt.place+": ")
				require.ErrorContains(t, err, tt.want)
				require.NotErrorIs(t, err, cniinstall.ErrPluginMissing)
			}
			require.Equal(t, before, tree(t, n.root), "nothing is touched")
		})
	}
}

// A plugin that does not support the configuration's version is found by running the staged
// copy, before anything is touched, and made directories are removed again.
func TestCNI2_VersionIsAskedBeforePublication(t *testing.T) {
	for _, recorded := range []string{"state", ""} {
		n := newNode(t)
		n.source("cilium-cni", script("0.1.0", "0.3.1"))
		if n.state = recorded; recorded != "" {
			n.state = filepath.Join(n.root, recorded)
		}
		before := tree(t, n.root)
		i := n.install()
		err := i.Apply(t.Context())
		require.ErrorIs(t, err, cniinstall.ErrInvalid)
		require.ErrorContains(t, err, ", plugins[0]: plugin cilium-cni does not speak cniVersion 1.0.0, only 0.1.0, 0.3.1")
		require.Equal(t, before, tree(t, n.root), "no plugin, no directory, no record")
	}
}

// In a dry run, plugins about to be installed count as present; one that nothing will install
// is missing, and worth waiting for.
func TestCNI2_PluginMissing(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.Config = cniinstall.Whole(list(agentPlugin, `{"type":"cloud-b"}`, `{"type":"cloud-a"}`))
	before := tree(t, n.root)
	for _, err := range []error{second(i.Check(t.Context())), i.Apply(t.Context())} {
		require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
		require.Equal(t, "cni.plugin-missing", code.Of(err))
		require.ErrorContains(t, err, "cloud-a is not in "+n.bin)
		require.ErrorContains(t, err, "cloud-b is not in "+n.bin)
		require.NotContains(t, err.Error(), "cilium-cni")
		require.NotErrorIs(t, err, cniinstall.ErrInvalid)
	}
	require.Equal(t, before, tree(t, n.root))

	write(t, n.plugin("cloud-a"), script("0.3.1", "1.0.0"), 0o644)
	other := filepath.Join(n.root, "other")
	write(t, filepath.Join(other, "cloud-b"), script("0.3.1", "1.0.0"), 0o755)
	i.Install = n.seeing(i.Install, other)
	err := i.Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
	require.ErrorContains(t, err, n.plugin("cloud-a")+" is not executable (mode 0644)")
	require.NotContains(t, err.Error(), "cloud-b")

	require.NoError(t, os.Chmod(n.plugin("cloud-a"), 0o755))
	requireApplied(t, i, n.root)
}
