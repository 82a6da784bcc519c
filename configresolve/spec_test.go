// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

var specDefaults = specs{configresolve.Ref{Namespace: "here", Name: "cilium-config"}, "me"}

// specs is what a source string may leave out.
type specs struct {
	configMap configresolve.Ref
	nodeName  string
}

// The limits are those of RFC 1123, as Kubernetes applies them to the names of objects.
var longest = strings.Repeat("a", 63)

func parseSpec(text string, defaults specs) (configresolve.Ref, error) {
	specs, err := configresolve.ParseSpecs([]string{text}, defaults.configMap, defaults.nodeName)
	if err != nil {
		return configresolve.Ref{}, err
	}
	return specs[0], nil
}

func TestParseSpec(t *testing.T) {
	type spec = configresolve.Ref
	for text, want := range map[string]spec{
		"config-map":                                {Kind: "config-map", Namespace: "here", Name: "cilium-config"},
		"config-map:":                               {Kind: "config-map", Namespace: "here", Name: "cilium-config"},
		"config-map:mine":                           {Kind: "config-map", Namespace: "here", Name: "mine"},
		"config-map:there/mine.v2":                  {Kind: "config-map", Namespace: "there", Name: "mine.v2"},
		"cilium-node-config":                        {Kind: "cilium-node-config", Namespace: "here"},
		"cilium-node-config:":                       {Kind: "cilium-node-config", Namespace: "here"},
		"cilium-node-config:there":                  {Kind: "cilium-node-config", Namespace: "there"},
		"cilium-node-config:there/named":            {Kind: "cilium-node-config", Namespace: "there", Name: "named"},
		"node":                                      {Kind: "node", Name: "me"},
		"node:worker-1.example.org":                 {Kind: "node", Name: "worker-1.example.org"},
		"dir:/etc/config":                           {Kind: "dir", Name: "/etc/config"},
		"dir:a:b":                                   {Kind: "dir", Name: "a:b"},
		"file:conf.yaml":                            {Kind: "file", Name: "conf.yaml"},
		"config-map:" + longest + "/a0-z9.0a-9z":    {Kind: "config-map", Namespace: longest, Name: "a0-z9.0a-9z"},
		"config-map:ns/" + strings.Repeat("a", 253): {Kind: "config-map", Namespace: "ns", Name: strings.Repeat("a", 253)},
		"env:CILIUM_":                               {Kind: "env", Name: "CILIUM_"},
	} {
		got, err := parseSpec(text, specDefaults)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := parseSpec(got.String(), specs{})
		require.NoError(t, err, text)
		require.Equal(t, want, again, text)
	}
	got, err := parseSpec("config-map", specs{configMap: configresolve.Ref{Namespace: "ns", Name: "other"}})
	require.NoError(t, err)
	require.Equal(t, "config-map:ns/other", got.String())
}

func TestParseSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		":":                             `unknown kind ""`,
		"configmap:x":                   `unknown kind "configmap", known are config-map, cilium-node-config, node, dir, file, env`,
		"config-map:/name":              "no namespace given",
		"config-map:ns/":                "no name given",
		"config-map:a/b/c":              "not the name of an object",
		"config-map:../evil":            "not a namespace",
		"config-map:ns/Upper":           "not the name of an object",
		"cilium-node-config:ns/":        "no name given",
		"cilium-node-config:-ns":        "not a namespace",
		"cilium-node-config:a.b":        "not a namespace",
		"node:a/b":                      "not the name of an object",
		"node:..":                       "not the name of an object",
		"dir:":                          "no path given",
		"dir":                           "no path given",
		"file:":                         "no path given",
		"env:":                          "no prefix",
		"env:A=":                        "no prefix",
		"static:x":                      "unknown kind",
		"config-map:" + longest + "a/x": "not a namespace",
		"config-map:ns/" + strings.Repeat("a", 254): "not the name of an object",
		"config-map:ns/a.-b":                        "not the name of an object",
		"config-map:ns/a..b":                        "not the name of an object",
		"config-map:ns/`":                           "not the name of an object",
		"config-map:ns/{":                           "not the name of an object",
		"config-map:ns/.":                           "not the name of an object",
		"config-map:ns/:":                           "not the name of an object",
		"config-map:kube-system/a\nb":               `"config-map:kube-system/a\nb"`,
		"config-map:kube-system/a b/c":              "want config-map[:[NAMESPACE/]NAME]",
	} {
		_, err := parseSpec(text, specDefaults)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{"config-map", "cilium-node-config", "node"} {
		_, err := parseSpec(text, specs{})
		require.Error(t, err, "%s without a default", text)
	}
	_, err := parseSpec("config-map", specs{configMap: configresolve.Ref{Namespace: "ns"}})
	require.EqualError(t, err, `source "config-map": no name given (want config-map[:[NAMESPACE/]NAME])`)
}

func TestParseSpecs(t *testing.T) {
	specs, err := configresolve.ParseSpecs([]string{"config-map:a/b, node", "", "dir:/x,"}, specDefaults.configMap, specDefaults.nodeName)
	require.NoError(t, err)
	require.Equal(t, []configresolve.Ref{
		{Kind: "config-map", Namespace: "a", Name: "b"}, {Kind: "node", Name: "me"}, {Kind: "dir", Name: "/x"}}, specs)

	_, err = configresolve.ParseSpecs([]string{"what", "node,ever"}, specDefaults.configMap, specDefaults.nodeName)
	require.ErrorContains(t, err, `"what"`)
	require.ErrorContains(t, err, `"ever"`)

	specs, err = configresolve.ParseSpecs(nil, specDefaults.configMap, specDefaults.nodeName)
	require.NoError(t, err)
	require.Empty(t, specs)
	for _, list := range [][]string{{""}, {","}, {" ", ",,"}} { // from variables that are not set
		_, err = configresolve.ParseSpecs(list, specDefaults.configMap, specDefaults.nodeName)
		require.ErrorContains(t, err, "names no source", "%q", list)
	}
}

func TestSpecSource(t *testing.T) {
	environ := []string{"X_A=1"}
	dir, file := mounted(t, "..v", values{"a": "1"}), write(t, filepath.Join(t.TempDir(), "f"), "a: 1")
	for _, text := range []string{"dir:" + dir, "file:" + file, "env:X_"} {
		spec, err := parseSpec(text, specDefaults)
		require.NoError(t, err)
		require.False(t, spec.Cluster())
		source, err := spec.Source(environ)
		require.NoError(t, err)
		require.Equal(t, values{"a": "1"}, read(t, source))
		require.Equal(t, text, source.Ref.String())
	}
	for _, text := range []string{"config-map", "cilium-node-config", "node"} {
		spec, err := parseSpec(text, specDefaults)
		require.NoError(t, err)
		require.True(t, spec.Cluster())
		_, err = spec.Source(nil)
		require.ErrorContains(t, err, "needs a cluster")
	}
	_, err := configresolve.Ref{Kind: "odd"}.Source(nil)
	require.ErrorContains(t, err, "unknown kind")
}

func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{"config-map:ns/name", "cilium-node-config:ns", "node", "dir:/x", "file:a,b", " node ", "env:P_", "config-map:../x", ":", "node:\x00", "config-map:/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := parseSpec(text, specDefaults)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.Zero(t, spec)
			return
		}
		again, err := parseSpec(spec.String(), specs{})
		require.NoError(t, err)
		require.Equal(t, spec, again)
		require.NotContains(t, spec.Namespace, "/")
		require.True(t, !spec.Cluster() || !strings.Contains(spec.Name, "/"))
	})
}
