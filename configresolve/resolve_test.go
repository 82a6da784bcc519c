// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
)

type values = map[string]string

// The text of a finding for a key that the policy drops.
const (
	notAllowed = "not in the allow list"
	denied     = "in the deny list"
)

func static(name string, v values) configresolve.Source {
	return configresolve.Static(name, v)
}

func ref(name string) configresolve.Ref {
	return configresolve.Ref{Kind: "static", Name: name}
}

// scripted is a source of several layers, or one that fails.
type scripted struct {
	ref    configresolve.Ref // scripted:all if it has none
	layers []configresolve.Layer
	err    error
}

func (s scripted) source() configresolve.Source {
	return configresolve.Source{
		Ref:  cmp.Or(s.ref, configresolve.Ref{Kind: "scripted", Name: "all"}),
		Read: func(context.Context) ([]configresolve.Layer, error) { return s.layers, s.err },
	}
}

func layer(name string, v values) configresolve.Layer {
	return configresolve.Layer{Ref: configresolve.Ref{Kind: "cilium-node-config", Namespace: "ns", Name: name}, Values: v}
}

func resolve(t *testing.T, r configresolve.Resolver) *configresolve.Config {
	t.Helper()
	c, err := r.Resolve(t.Context())
	require.NoError(t, err)
	return c
}

func all(c *configresolve.Config) values { return maps.Collect(c.All()) }

func TestCFG1_LaterSourceOverridesKeyByKey(t *testing.T) {
	c, err := configresolve.Resolve(t.Context(),
		static("a", values{"x": "1", "y": "1", "empty": "full"}),
		static("b", values{"y": "2", "z": "2", "empty": ""}),
		static("c", values{"z": "3", "text": " kept \n\n"}))
	require.NoError(t, err)
	require.Equal(t, values{"x": "1", "y": "2", "z": "3", "empty": "", "text": " kept \n\n"}, all(c))

	var order []string
	for key := range c.All() {
		order = append(order, key)
	}
	require.Equal(t, []string{"empty", "text", "x", "y", "z"}, order)
	_, ok := c.Lookup("nowhere")
	require.False(t, ok)
}

func TestCFG2_OverridePolicy(t *testing.T) {
	base := static("base", values{"a": "1", "b": "1"})
	later := static("later", values{"a": "2", "new": "2"})
	missing := configresolve.Optional(scripted{err: configresolve.ErrMissing}.source())
	for name, test := range map[string]struct {
		resolver configresolve.Resolver
		want     values
		denied   []string
		rule     string
	}{
		"no policy": {configresolve.Resolver{Sources: []configresolve.Source{base, later}},
			values{"a": "2", "b": "1", "new": "2"}, nil, ""},
		"allow": {configresolve.Resolver{Sources: []configresolve.Source{base, later}, AllowKeys: []string{"a"}},
			values{"a": "2", "b": "1"}, []string{"new"}, notAllowed},
		"deny": {configresolve.Resolver{Sources: []configresolve.Source{base, later}, DenyKeys: []string{"a"}},
			values{"a": "1", "b": "1", "new": "2"}, []string{"a"}, denied},
		"deny gates keys that override nothing": {configresolve.Resolver{Sources: []configresolve.Source{base, later}, DenyKeys: []string{"new"}},
			values{"a": "2", "b": "1"}, []string{"new"}, denied},
		"allow wins over deny": {configresolve.Resolver{Sources: []configresolve.Source{base, later}, AllowKeys: []string{"a"}, DenyKeys: []string{"a"}},
			values{"a": "2", "b": "1"}, []string{"new"}, notAllowed},
		"the first is never gated": {configresolve.Resolver{Sources: []configresolve.Source{base}, AllowKeys: []string{"other"}},
			values{"a": "1", "b": "1"}, nil, ""},
		"exact match": {configresolve.Resolver{Sources: []configresolve.Source{base, later}, AllowKeys: []string{"A", "ne", "new "}},
			values{"a": "1", "b": "1"}, []string{"a", "new"}, notAllowed},
		"the first is first also when missing": {configresolve.Resolver{Sources: []configresolve.Source{missing, later}, DenyKeys: []string{"a"}},
			values{"new": "2"}, []string{"a"}, denied},
	} {
		t.Run(name, func(t *testing.T) {
			c := resolve(t, test.resolver)
			require.Equal(t, test.want, all(c))
			var denied []string
			for _, f := range c.Explain().Findings {
				if f.Problem == "denied" {
					denied = append(denied, f.Key)
					require.Equal(t, ref("later"), f.Source)
					require.Equal(t, test.rule, f.Reason)
				}
			}
			require.Equal(t, test.denied, denied)
		})
	}
}

func TestCFG4_MissingSource(t *testing.T) {
	missing := scripted{err: errors.Join(errors.New("ConfigMap ns/name"), configresolve.ErrMissing)}.source()
	_, err := configresolve.Resolve(t.Context(), missing)
	require.ErrorIs(t, err, configresolve.ErrMissing)
	require.ErrorContains(t, err, "read source scripted:all")

	c, err := configresolve.Resolve(t.Context(), configresolve.Optional(missing), static("a", values{"x": "1"}))
	require.NoError(t, err)
	require.Equal(t, values{"x": "1"}, all(c))
	require.Equal(t, "missing", c.Explain().Findings[0].Problem)
	require.Contains(t, c.Explain().Findings[0].String(), "missing scripted:all: ConfigMap ns/name")

	broken := errors.New("connection refused")
	_, err = configresolve.Resolve(t.Context(), configresolve.Optional(scripted{err: broken}.source()))
	require.ErrorIs(t, err, broken, "Optional tolerates only absence")
}

func TestCFG5_KeysAreValidatedForEverySource(t *testing.T) {
	long := strings.Repeat("k", 254)
	bad := []string{"../evil", "..", ".", "..data", "a/b", "", "blank key", "größe", "nul\x00", "new\nline", long}
	for _, key := range bad {
		for position, sources := range map[string][]configresolve.Source{
			"first": {static("s", values{key: "x", "good": "1"})},
			"later": {static("first", nil), static("s", values{key: "x", "good": "1"})},
		} {
			t.Run(position+" "+key, func(t *testing.T) {
				c := resolve(t, configresolve.Resolver{Sources: sources})
				require.Equal(t, values{"good": "1"}, all(c))
				require.NotContains(t, c.Data(), key)
				require.Len(t, c.Explain().Findings, 1)
				f := c.Explain().Findings[0]
				require.Equal(t, "invalid", f.Problem)
				require.Equal(t, ref("s"), f.Source)
				require.NotContains(t, f.String(), "\n")
				require.Less(t, len(f.String()), 300)

				_, err := configresolve.Resolver{Sources: sources, Strict: true}.Resolve(t.Context())
				require.ErrorContains(t, err, "from static:s")
			})
		}
	}
	good := values{"a": "", "A.b-C_9": "", "-": "", ".hidden": "", strings.Repeat("k", 253): "", "a..b": ""}
	require.Equal(t, good, all(resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("s", good)}, Strict: true})))
}

func TestCFG5_StrictReportsEveryKey(t *testing.T) {
	_, err := configresolve.Resolver{Strict: true, Sources: []configresolve.Source{
		static("a", values{"../evil": "", "x y": ""}), static("b", values{"config-sources": "[]"}),
	}}.Resolve(t.Context())
	require.ErrorContains(t, err, `invalid key "../evil" from static:a: starts with ".."`)
	require.ErrorContains(t, err, `invalid key "x y" from static:a`)
	require.ErrorContains(t, err, `reserved key "config-sources" from static:b`)
	require.Equal(t, "config.invalid", code.Of(err))
}

func TestCFG5_WriterKeysAreReserved(t *testing.T) {
	c := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{
		static("s", values{"config-sources": "lies", "config-sources-overrides": "lies", "a": "1"})}})
	require.Equal(t, values{"a": "1"}, all(c))
	require.Len(t, c.Explain().Findings, 2)
	for _, f := range c.Explain().Findings {
		require.Equal(t, "reserved", f.Problem)
	}
	require.Equal(t, "[]", c.Data()["config-sources"])
}

func TestCFG6_SourcesAsAgentsReadThem(t *testing.T) {
	configMap := scripted{layers: []configresolve.Layer{{
		Ref: configresolve.Ref{Kind: "config-map", Namespace: "kube-system", Name: "cilium-config"}, Values: values{"a": "1"}}}}.source()
	node := configresolve.Ref{Kind: "node", Name: "worker"}
	for name, test := range map[string]struct {
		resolver           configresolve.Resolver
		sources, overrides string
	}{
		"nothing": {configresolve.Resolver{}, `[]`, `{"allowConfigKeys":[],"denyConfigKeys":[]}`},
		"one entry for each matching object": {
			configresolve.Resolver{Sources: []configresolve.Source{configMap,
				scripted{layers: []configresolve.Layer{layer("one", values{"b": "1"}), layer("two", values{"c": "1"})}}.source()}},
			`[{"kind":"config-map","namespace":"kube-system","name":"cilium-config"},` +
				`{"kind":"cilium-node-config","namespace":"ns","name":"one"},{"kind":"cilium-node-config","namespace":"ns","name":"two"}]`,
			`{"allowConfigKeys":[],"denyConfigKeys":[]}`},
		"a node's labels and annotations are one entry": {
			configresolve.Resolver{Sources: []configresolve.Source{scripted{layers: []configresolve.Layer{
				{Ref: node, Part: "labels", Values: values{"a": "1"}}, {Ref: node, Part: "annotations", Values: values{"b": "1"}}}}.source()}},
			`[{"kind":"node","namespace":"","name":"worker"}]`, `{"allowConfigKeys":[],"denyConfigKeys":[]}`},
		"a source left without keys is none": {
			configresolve.Resolver{AllowKeys: []string{"z"}, Sources: []configresolve.Source{configMap,
				scripted{layers: []configresolve.Layer{layer("one", values{"b": "1"})}}.source()}},
			`[{"kind":"config-map","namespace":"kube-system","name":"cilium-config"}]`, `{"allowConfigKeys":["z"],"denyConfigKeys":[]}`},
		"every object of a source that keeps a key": {
			configresolve.Resolver{DenyKeys: []string{"b"}, Sources: []configresolve.Source{configMap,
				scripted{layers: []configresolve.Layer{layer("one", values{"b": "1"}), layer("two", values{"c": "1"})}}.source()}},
			`[{"kind":"config-map","namespace":"kube-system","name":"cilium-config"},` +
				`{"kind":"cilium-node-config","namespace":"ns","name":"one"},{"kind":"cilium-node-config","namespace":"ns","name":"two"}]`,
			`{"allowConfigKeys":[],"denyConfigKeys":["b"]}`},
		"kinds that an agent cannot watch stay out": {
			configresolve.Resolver{Sources: []configresolve.Source{static("s", values{"a": "1"})}},
			`[]`, `{"allowConfigKeys":[],"denyConfigKeys":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			data := resolve(t, test.resolver).Data()
			require.Equal(t, test.sources, data["config-sources"])
			require.Equal(t, test.overrides, data["config-sources-overrides"])
		})
	}
}

func TestCFG3_DoubledKeyAmongObjectsOfOneSource(t *testing.T) {
	c := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{
		scripted{layers: []configresolve.Layer{layer("a", values{"k": "1"}), layer("b", values{"k": "2"})}}.source()}})
	require.Equal(t, values{"k": "2"}, all(c))
	require.Len(t, c.Explain().Findings, 1)
	require.Equal(t, `doubled key "k" from cilium-node-config:ns/b: also set by cilium-node-config:ns/a, which it overrides`, c.Explain().Findings[0].String())
}

func TestResolveIsEndedByItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := configresolve.Resolve(ctx, static("a", nil))
	require.ErrorIs(t, err, context.Canceled)
}

// A user who may annotate a Node or write a later source must not be able to make the agent
// destroy anything.
func TestCLN10_KeysThatDestroyAreTakenFromWhoRunsTheProgram(t *testing.T) {
	const key = "clean-cilium-state"
	from := func(kind, value string) configresolve.Source {
		ref := configresolve.Ref{Kind: kind, Name: "x"}
		return scripted{ref: ref, layers: []configresolve.Layer{{Ref: ref, Values: values{key: value, "more": value}}}}.source()
	}
	env := func(value string) configresolve.Source {
		return configresolve.Env("A_", []string{"A_CLEAN_CILIUM_STATE=" + value})
	}
	const file, cm, crs, node = "file", "config-map", "cilium-node-config", "node"
	for name, c := range map[string]struct {
		sources []configresolve.Source
		want    string
	}{
		"the first":                   {[]configresolve.Source{from(cm, "true")}, "true"},
		"the first, a file":           {[]configresolve.Source{from(file, "true"), from(node, "true")}, "true"},
		"the first, optional":         {[]configresolve.Source{configresolve.Optional(from(cm, "true"))}, "true"},
		"a Node":                      {[]configresolve.Source{from(cm, "false"), from(node, "true")}, ""},
		"a Node alone":                {[]configresolve.Source{from(node, "true")}, ""},
		"an optional Node alone":      {[]configresolve.Source{configresolve.Optional(from(node, "true"))}, ""},
		"a Node where nobody else":    {[]configresolve.Source{static("s", nil), from(node, "true")}, ""},
		"a later node config":         {[]configresolve.Source{from(cm, "false"), from(crs, "true")}, ""},
		"a later ConfigMap":           {[]configresolve.Source{from(crs, "false"), from(cm, "true")}, ""},
		"a later file":                {[]configresolve.Source{from(cm, "false"), from(file, "true")}, ""},
		"the first is missing":        {[]configresolve.Source{configresolve.Optional(scripted{err: configresolve.ErrMissing}.source()), from(cm, "true")}, ""},
		"the environment, later":      {[]configresolve.Source{from(node, "false"), env("true")}, "true"},
		"the program, later":          {[]configresolve.Source{from(node, "false"), static("flags", values{key: "true"})}, "true"},
		"a Node over the environment": {[]configresolve.Source{env("false"), from(node, "true")}, ""},
		"a Node takes back":           {[]configresolve.Source{from(cm, "true"), from(node, "false")}, ""},
		"a Node agrees":               {[]configresolve.Source{from(cm, "true"), from(node, "true")}, "true"},
		"taken back, and again":       {[]configresolve.Source{from(cm, "true"), env("false"), from(node, "true")}, ""},
	} {
		config, err := configresolve.Resolve(t.Context(), c.sources...)
		require.NoError(t, err)
		got, ok := config.Trusted(key)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want != "", ok, name)
	}
	denied := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{from(node, "x"), env("true")}, DenyKeys: []string{key}})
	_, ok := denied.Trusted(key)
	require.False(t, ok)
	_, ok = denied.Trusted("no such key")
	require.False(t, ok)
}
