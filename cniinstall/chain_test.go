// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

// Configurations of other CNIs, as they write them.
const (
	awsConf = `{
  "cniVersion": "0.4.0",
  "name": "aws-cni",
  "disableCheck": true,
  "plugins": [
    {"name": "aws-cni", "type": "aws-cni", "vethPrefix": "eni", "mtu": "9001", "pluginLogFile": "/var/log/it's \"quoted\""},
    {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
  ]
}
`
	singleConf = `{"name":"cbr0", "type":"bridge", "cniVersion":"0.3.0", "mtu": 12345678901234567890, "ipam":{"type":"host-local","subnet":"10.0.0.0/24"}}`
	withOurs   = `{"name": "k8s", "cniVersion": "1.0.0", "plugins": [{"type": "ptp"},
  {"type": "cilium-cni", "chaining-mode": "old", "kept": "no"}, {"type": "portmap"}, {"type": "cilium-cni"}]}`
)

func TestCNI4_ChainGolden(t *testing.T) {
	ours := cniinstall.Agent{LogFile: "/var/log/" + quotes}
	aws, single := map[string]string{"10-aws.conflist": awsConf}, map[string]string{"20-bridge.conf": singleConf}
	both := map[string]string{"10-aws.conflist": awsConf, "20-bridge.conf": singleConf}
	tests := []struct {
		name    string
		files   map[string]string
		chained cniinstall.Chained
		net     string
		version string
		types   []string
		mode    any
	}{
		{"chain-name-list", both, chainedOf(cniinstall.Chained{Network: "aws-cni", Agent: ours}), "aws-cni", "0.4.0",
			[]string{"aws-cni", "portmap", "cilium-cni"}, "generic-veth"},
		{"chain-name-single", both, chainedOf(cniinstall.Chained{Network: "cbr0", Agent: ours}), "cbr0", "0.3.0",
			[]string{"bridge", "cilium-cni"}, "generic-veth"},
		{"chain-any-list", aws, chainedOf(cniinstall.Chained{Network: "*", Agent: cniinstall.Agent{Mode: "aws-cni", Debug: true}}), "aws-cni", "0.4.0",
			[]string{"aws-cni", "portmap", "cilium-cni"}, "aws-cni"},
		{"chain-any-single", single, chainedOf(cniinstall.Chained{Agent: cniinstall.Agent{Mode: "none"}}), "cbr0", "0.3.0",
			[]string{"bridge", "cilium-cni"}, "generic-veth"},
		{"chain-in-place", map[string]string{"a.conflist": withOurs}, chainedOf(cniinstall.Chained{Agent: ours}), "k8s", "1.0.0",
			[]string{"ptp", "cilium-cni", "portmap"}, "generic-veth"},
		{"chain-mode-quotes", aws, chainedOf(cniinstall.Chained{Agent: cniinstall.Agent{Mode: quotes, Plugin: `a'"b`}}), "aws-cni", "0.4.0",
			[]string{"aws-cni", "portmap", `a'"b`}, quotes},
		{"chain-plugin", aws, cniinstall.Chained{Plugin: []byte(`{"type":"portmap","of":"it's \"mine\""}`)}, "aws-cni", "0.4.0",
			[]string{"aws-cni", "portmap"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tt.files {
				write(t, filepath.Join(dir, name), content, 0o644)
			}
			before := tree(t, dir)
			got, err := tt.chained.Render(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, before, tree(t, dir))
			list := golden(t, tt.name, got)
			require.Equal(t, tt.net, list.Name, "the target's name, also for *")
			require.Equal(t, tt.version, list.CNIVersion)
			require.Equal(t, tt.types, plugins(list))
			for i, plugin := range tt.types {
				if plugin == tt.chained.Agent.Plugin || plugin == "cilium-cni" {
					require.Equal(t, tt.mode, option(t, list, i, "chaining-mode"))
					require.Nil(t, option(t, list, i, "kept"), "options of an older entry are dropped")
				}
			}
		})
	}
}

// The target is the first suitable file in the runtime's order; one that was set aside only if
// there is no other; never one of ours.
func TestCNI4_TheFirstSuitableFileOfAnotherIsTheOneJoined(t *testing.T) {
	list := func(name, plugin string) string {
		return `{"cniVersion":"0.3.1","name":"` + name + `","plugins":[{"type":"` + plugin + `"}]}`
	}
	tests := []struct {
		name   string
		target string
		files  map[string]string
		want   string // the first plugin; empty if none is found
	}{
		{"first by name of the file", "*", map[string]string{"20.conflist": list("a", "second"), "10.conflist": list("b", "first")}, "first"},
		{"ours is no target", "*", map[string]string{"05-cilium.conflist": list("a", "ours"), "10.conflist": list("a", "theirs")}, "theirs"},
		{"ours set aside is no target", "*", map[string]string{"05-cilium.conflist.cilium_bak": list("a", "ours")}, ""},
		{"ours of an older name is no target", "*", map[string]string{"05-cilium.conf": `{"name":"cilium","type":"cilium-cni"}`, "10.conflist": list("a", "theirs")}, "theirs"},
		{"by name ours is no target either", "cilium", map[string]string{"05-cilium.conf": `{"name":"cilium","type":"cilium-cni"}`}, ""},
		{"set aside", "*", map[string]string{"10.conf.cilium_bak": `{"name":"a","type":"aside"}`}, "aside"},
		{"set aside with a number", "a", map[string]string{"10.conflist.cilium_bak.12": list("a", "aside")}, "aside"},
		{"not set aside by us", "*", map[string]string{"10.conflist.bak": list("a", "p"), "10.conflist.cilium_bak.x": list("a", "p"), "README.cilium_bak": list("a", "p")}, ""},
		{"live before set aside", "*", map[string]string{"10.conflist.cilium_bak": list("a", "aside"), "20.conflist": list("a", "live")}, "live"},
		{"set aside, of that name", "a", map[string]string{"10.conflist.cilium_bak": list("a", "aside"), "20.conflist": list("b", "live")}, "aside"},
		{"a list in a .conf is invalid", "*", map[string]string{"10.conf": list("a", "bad"), "20.json": `{"name":"a","type":"good"}`}, "good"},
		{"invalid ones are passed over", "*", map[string]string{"01.conflist": "{", "02.conflist": "", "03.conflist": `{"name":"a","plugins":[]}`,
			"04.conf": `{"name":"a"}`, "05.conflist": list("", "bad"), "06.conflist": list("a", "good")}, "good"},
		{"no file", "*", nil, ""},
		{"of another name", "b", map[string]string{"10.conflist": list("a", "p")}, ""},
		{"the name has to be the same", "A", map[string]string{"10.conflist": list("a", "p")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tt.files {
				write(t, filepath.Join(dir, name), content, 0o644)
			}
			require.NoError(t, os.Mkdir(filepath.Join(dir, "00-dir.conflist"), 0o755))
			i := cniinstall.Cilium("")
			i.ConfDir = dir
			got, err := cniinstall.RenderIn(t.Context(), chainedOf(cniinstall.Chained{Network: tt.target}), i)
			if tt.want == "" {
				require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
				require.ErrorContains(t, err, "chain onto "+cmp.Or(map[string]string{"": "the first CNI network", "*": "the first CNI network"}[tt.target], "CNI network "+tt.target))
				require.ErrorContains(t, err, dir)
				return
			}
			require.NoError(t, err)
			list, err := libcni.NetworkConfFromBytes(got)
			require.NoError(t, err)
			require.Equal(t, []string{tt.want, "cilium-cni"}, plugins(list))
		})
	}
}

// The other CNI arrives later: until then nothing is touched, and the error is one to wait on.
// A bad file of the other CNI is reported, also inside the error.
func TestCNI4_WaitForTheTarget(t *testing.T) {
	n := newNode(t)
	write(t, n.plugin("aws-cni"), script("0.4.0"), 0o755)
	write(t, n.plugin("portmap"), script("0.4.0"), 0o755)
	write(t, filepath.Join(n.conf, "01-bad.conflist"), `{"name": "aws-cni", "plugins": [`, 0o644)
	i := n.install()
	i.Config = chainedOf(cniinstall.Chained{Network: "aws-cni", Agent: cniinstall.Agent{Mode: "aws-cni"}})
	before := tree(t, n.root)
	for _, err := range []error{i.Apply(t.Context()), second(i.Check(t.Context()))} {
		require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
		require.Equal(t, "cni.target-missing", code.Of(err))
		require.ErrorContains(t, err, "01-bad.conflist is skipped: invalid CNI configuration 01-bad.conflist, line 1 column 32")
	}
	require.Equal(t, before, tree(t, n.root))

	write(t, filepath.Join(n.conf, "10-aws.conflist"), awsConf, 0o644)
	require.NoError(t, i.Apply(t.Context()))
	advice, err := i.Advise(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(advice, "\n"), "01-bad.conflist is skipped")
	requireConverged(t, i, n.root)
	list, err := libcni.NetworkConfFromFile(n.confFile())
	require.NoError(t, err)
	require.Equal(t, []string{"aws-cni", "portmap", "cilium-cni"}, plugins(list))
	requireContent(t, filepath.Join(n.conf, "10-aws.conflist"), awsConf, 0o644)
}

func TestCNI4_ChainedThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "10-aws.conflist"), awsConf, 0o644)
	for want, c := range map[string]cniinstall.Chained{
		"are those of the configuration that it joins": {Agent: cniinstall.Agent{Network: "mine"}},
		`"\xff" is not UTF-8`:                          chainedOf(cniinstall.Chained{Agent: cniinstall.Agent{Mode: "\xff"}}),
		"no agent plugin given":                        {},
		"missing 'type'":                               {Plugin: []byte(`{"name": "mine"}`)},
		"not a file name":                              chainedOf(cniinstall.Chained{Agent: cniinstall.Agent{Plugin: "../cilium-cni"}}),
		"unexpected end of JSON input":                 {Plugin: []byte(`{`)},
	} {
		_, err := c.Render(t.Context(), dir)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, cniinstall.ErrTargetMissing, "waiting would not help")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := chainedOf(cniinstall.Chained{}).Render(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCNI4_ChainKeepsWhatItDoesNotKnow(t *testing.T) {
	const conf = `{"args":{"<&>":"\u2028"},"name":"n","cniVersion":"1.0.0","plugins":[{"type":"a","big":12345678901234567890.10,"z":1,"a":2}],"plugins":[{"type":"b","big":1e400}]}`
	got, err := cniinstall.Chain([]byte(conf), []byte(`{"type":"c"}`))
	require.Error(t, err, "libcni cannot read 1e400")
	require.Empty(t, got)
	got, err = cniinstall.Chain([]byte(`{"args":{"<&>":"\u2028"},"name":"n","plugins":[{"type":"x"}],"cniVersion":"1.0.0","plugins":[{"type":"b","big":12345678901234567890.10,"z":1,"a":2}]}`), []byte(`{"type":"c"}`))
	require.NoError(t, err)
	require.Equal(t, `{
  "args": {
    "<&>": "\u2028"
  },
  "cniVersion": "1.0.0",
  "name": "n",
  "plugins": [
    {
      "type": "b",
      "big": 12345678901234567890.10,
      "z": 1,
      "a": 2
    },
    {
      "type": "c"
    }
  ]
}
`, string(got))

	_, err = cniinstall.Chain([]byte(`{"name":"n","plugins":[{"type":"a"},{}]}`), []byte(`{"type":"c"}`))
	require.ErrorIs(t, err, cniinstall.ErrInvalid)
	require.ErrorContains(t, err, "plugins[1]")
}

// For any configuration and plugin, the result is an error or a list that libcni accepts: the
// same name and version, the same other plugins in their order, and ours once. Chaining again
// changes nothing.
func FuzzChain(f *testing.F) {
	for _, conf := range []string{awsConf, singleConf, withOurs, agentConf, "", "null", "{}", `{"name":"n","type":"a","plugins":[{"type":"b"}]}`,
		`{"name":"n","plugins":[{"type":"a"}],"plugins":[{"type":"b"}],"name":"m"}`, `{"name":"n","Type":"a","type":"b","cniVersion":"1.0.0"}`} {
		f.Add([]byte(conf), []byte(`{"type":"cilium-cni","chaining-mode":"generic-veth"}`))
		f.Add([]byte(conf), []byte(`{"type":"bridge","Type":"portmap"}`))
	}
	f.Fuzz(func(t *testing.T, conf, plugin []byte) {
		got, err := cniinstall.Chain(conf, plugin)
		if err != nil {
			return
		}
		list, err := libcni.NetworkConfFromBytes(got)
		require.NoError(t, err)
		was := asList(t, conf)
		require.Equal(t, was.Name, list.Name)
		require.Equal(t, was.CNIVersion, list.CNIVersion)
		own := asList(t, []byte(`{"name":"n","plugins":[`+string(plugin)+`]}`)).Plugins[0].Network.Type
		require.Equal(t, without(plugins(was), own), without(plugins(list), own))
		require.Len(t, list.Plugins, len(without(plugins(was), own))+1)
		require.Contains(t, plugins(list), own)
		again, err := cniinstall.Chain(got, plugin)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
	})
}

func without(types []string, own string) []string {
	kept := []string{}
	for _, t := range types {
		if t != own {
			kept = append(kept, t)
		}
	}
	return kept
}

// asList parses a list, or a single plugin's configuration as runtimes parse it.
func asList(t *testing.T, conf []byte) *libcni.NetworkConfigList {
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(conf, &top))
	if _, isList := top["plugins"]; isList {
		list, err := libcni.NetworkConfFromBytes(conf)
		require.NoError(t, err)
		return list
	}
	single, err := libcni.NetworkPluginConfFromBytes(conf)
	require.NoError(t, err)
	//lint:ignore SA1019 it is what runtimes still call for a .conf
	list, err := libcni.ConfListFromConf(single)
	require.NoError(t, err)
	return list
}

var _ cniinstall.Config = cniinstall.Chained{}
