// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

var prepared = map[string]bool{}

// prepareOnce creates the vector's cluster objects for the first test that needs them.
func (v vector) prepareOnce(t testing.TB) {
	t.Helper()
	if !prepared[v.Name] {
		prepared[v.Name] = true
		v.prepare(t)
	}
}

func (v vector) prepare(t testing.TB) {
	t.Helper()
	createNamespace(t, v.namespace())
	for name, data := range v.ConfigMaps {
		createConfigMap(t, v.namespace(), name, data)
	}
	for _, c := range v.NodeConfigs {
		createNodeConfig(t, v.namespace(), c)
	}
	if !v.NoNode {
		createNode(t, v.node(), v.Labels, v.Annotations)
	}
}

func (v vector) resolver(t testing.TB, client *kube.Client) configresolve.Resolver {
	t.Helper()
	list := sources(t, client, v.namespace(), v.node(), v.fill(v.Sources)...)
	if v.Optional {
		list[0] = configresolve.Optional(list[0])
	}
	return configresolve.Resolver{Sources: list, AllowKeys: v.Allow, DenyKeys: v.Deny}
}

func (v vector) check(t testing.TB, config *configresolve.Config) {
	t.Helper()
	require.Equal(t, v.Want, maps.Collect(config.All()))
	var origins, findings []string
	for _, ref := range config.Explain().Sources {
		origins = append(origins, ref.String())
	}
	for _, f := range config.Explain().Findings {
		findings = append(findings, short(f))
	}
	require.Equal(t, v.fill(v.Origins), origins)
	require.Equal(t, v.fill(v.Findings), findings)
}

// TestCFG_Vectors resolves every vector on the real server, with each set of served versions of
// node configs: CFG 1 to 6 and 9.
func TestCFG_Vectors(t *testing.T) {
	for _, v := range vectors {
		v.prepareOnce(t)
	}
	defer serve(t, server, v2, v2alpha1)
	for _, served := range [][]string{{v2, v2alpha1}, {v2}, {v2alpha1}} {
		t.Run(strings.Join(served, " and "), func(t *testing.T) {
			serve(t, server, served...)
			for _, v := range vectors {
				t.Run(v.Name, func(t *testing.T) { v.run(t, served[0] == v2alpha1) })
			}
		})
	}
}

func (v vector) run(t *testing.T, older bool) {
	client, userAgent := connect(t, kube.Connection{})
	config, err := v.resolver(t, client).Resolve(t.Context())
	require.NoError(t, err)
	v.check(t, config)

	requests, want := audited(t, userAgent), v.Requests
	if older && strings.Contains(strings.Join(v.Sources, " "), "cilium-node-config") {
		want++
	}
	require.Len(t, requests, want, "%s", requests)
	dir := filepath.Join(t.TempDir(), "config")
	_, err = configdir.Write(t.Context(), dir, config)
	require.NoError(t, err)
	requireDir(t, dir, v.Want, v.fill(v.Origins))
}

// requireDir reads a directory as an agent does: it holds only keys, and no dangling links.
func requireDir(t testing.TB, dir string, want values, origins []string) {
	t.Helper()
	got := readDir(t, dir)
	var refs []configresolve.Ref
	require.NoError(t, json.Unmarshal([]byte(got["config-sources"]), &refs))
	var list []string
	for _, ref := range refs {
		list = append(list, ref.String())
	}
	require.Equal(t, origins, list)
	require.Contains(t, got, "config-sources-overrides")
	delete(got, "config-sources")
	delete(got, "config-sources-overrides")
	require.Equal(t, want, got)
}

func readDir(t testing.TB, dir string) values {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	got, data := values{}, 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			if e.IsDir() {
				data++
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		got[e.Name()] = string(text)
	}
	require.Equal(t, 1, data, "one data directory")
	return got
}

func merge(t testing.TB, path string, patch fields) {
	t.Helper()
	require.NoError(t, server.Admin().Merge(t.Context(), path, patch))
}

// TestCFG9_AcknowledgedChangesAreNeverMissed reads after each of many changes.
func TestCFG9_AcknowledgedChangesAreNeverMissed(t *testing.T) {
	const name = "acknowledged"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"n": "0"})
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"kubernetes.io/os":"linux"}}`, values{"m": "0"}})
	createNode(t, name, values{"kubernetes.io/os": "linux"}, values{"config.cilium.io/o": "0"})
	client, _ := connect(t, kube.Connection{})
	list := sources(t, client, name, name, three...)
	for i := range 50 {
		n := string(rune('A' + i))
		merge(t, "/api/v1/namespaces/"+name+"/configmaps/cilium-config", fields{"data": fields{"n": n}})
		merge(t, nodeConfigsPath(v2, name)+"/x", fields{"spec": fields{"defaults": fields{"m": n}}})
		merge(t, "/api/v1/nodes/"+name, fields{"metadata": fields{"annotations": fields{"config.cilium.io/o": n}}})
		config, err := configresolve.Resolve(t.Context(), list...)
		require.NoError(t, err)
		require.Equal(t, values{"n": n, "m": n, "o": n}, maps.Collect(config.All()))
	}
}
