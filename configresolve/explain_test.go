// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func explained(t *testing.T) *configresolve.Config {
	t.Helper()
	return resolve(t, configresolve.Resolver{
		DenyKeys: []string{"cluster-id", "only-denied"},
		Sources: []configresolve.Source{
			static("defaults", values{"mtu": "1500", "cluster-id": "1", "script": "line one\nline two\n", "../evil": "x"}),
			configresolve.Optional(scripted{err: configresolve.ErrMissing}.source()),
			scripted{layers: []configresolve.Layer{layer("a", values{"mtu": "1450"}), layer("b", values{"mtu": "9000", "cluster-id": "2"})}}.source(),
			scripted{layers: []configresolve.Layer{{Ref: configresolve.Ref{Kind: "node", Name: "worker"}, Part: "annotations",
				Values: values{"cluster-id": "3", "only-denied": ""}}}}.source(),
		}})
}

func TestCFG6_ExplainText(t *testing.T) { golden(t, "explain.txt", explained(t).Explain().String()) }

func TestCFG6_ExplainJSON(t *testing.T) {
	text, err := json.MarshalIndent(explained(t).Explain(), "", "  ")
	require.NoError(t, err)
	golden(t, "explain.json", string(text)+"\n")

	empty, err := json.Marshal(resolve(t, configresolve.Resolver{}).Explain())
	require.NoError(t, err)
	require.Equal(t, `{"keys":[],"sources":[],"findings":[]}`, string(empty))
}

func TestCFG6_ExplainOneKey(t *testing.T) {
	x := explained(t).Explain("mtu")
	require.Len(t, x.Keys, 1)
	require.Equal(t, []string{"1500", "1450"}, []string{x.Keys[0].Overrode[0].Value, x.Keys[0].Overrode[1].Value})
	require.Equal(t, "mtu = \"9000\" from cilium-node-config:ns/b\n"+
		"    overrides \"1450\" from cilium-node-config:ns/a\n"+
		"    overrides \"1500\" from static:defaults\n"+
		"! missing scripted:all: source does not exist\n"+
		"! doubled key \"mtu\" from cilium-node-config:ns/b: also set by cilium-node-config:ns/a, which it overrides\n", x.String())

	x = explained(t).Explain("no-such")
	require.False(t, x.Keys[0].Set)
	require.Contains(t, x.String(), `"no-such" is not set`)
}
