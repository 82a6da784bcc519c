// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/configresolve"
)

// vector is one case: the objects in its own namespace (NS in its texts) and on its node
// (NODE), and the expected result.
type vector struct {
	name        string
	configMaps  map[string]values
	nodeConfigs []nodeConfig
	labels      values
	annotations values
	noNode      bool

	sources     []string
	optional    bool // whether the first source is
	allow, deny []string

	want     values
	origins  []string // of config-sources
	findings []string // problem, key and source
	requests int      // where both versions of node configs are served
	differs  string   // why Cilium's build-config writes something else; empty if it does not
}

var three = []string{"config-map", "cilium-node-config", "node"}

const (
	cm   = "config-map:NS/cilium-config"
	node = "node:NODE"
	cr   = "cilium-node-config:NS/"
)

var vectors = []vector{
	{
		name:        "precedence of three sources",
		configMaps:  map[string]values{"cilium-config": {"a": "cm", "b": "cm", "c": "cm", "only-cm": "1"}},
		nodeConfigs: []nodeConfig{{"x", `{"matchLabels":{"zone":"a"}}`, values{"b": "cr", "c": "cr", "only-cr": "1"}}},
		labels:      values{"zone": "a"}, annotations: values{"config.cilium.io/c": "node", "config.cilium.io/only-node": "1"},
		sources: three,
		want:    values{"a": "cm", "b": "cr", "c": "node", "only-cm": "1", "only-cr": "1", "only-node": "1"},
		origins: []string{cm, cr + "x", node}, requests: 3,
	},
	{
		name:        "the order is that of the list",
		configMaps:  map[string]values{"cilium-config": {"k": "cm"}, "second": {"k": "second"}},
		annotations: values{"config.cilium.io/k": "node"},
		sources:     []string{"node", "config-map:second", "config-map"},
		want:        values{"k": "cm"},
		origins:     []string{node, "config-map:NS/second", cm}, requests: 3,
	},
	{
		name:       "the gate lets the first source pass",
		configMaps: map[string]values{"cilium-config": {"a": "cm", "b": "cm"}}, annotations: values{"config.cilium.io/a": "n", "config.cilium.io/b": "n", "config.cilium.io/new": "n"},
		sources: three, allow: []string{"b"},
		want:     values{"a": "cm", "b": "n"},
		findings: []string{"denied a " + node, "denied new " + node},
		origins:  []string{cm, node}, requests: 3,
	},
	{
		name:       "the gate's first source is the first of the list though it is missing",
		configMaps: map[string]values{"second": {"a": "second", "b": "second"}}, annotations: values{"config.cilium.io/b": "n"},
		sources: []string{"config-map:missing", "config-map:second", "node"}, optional: true, allow: []string{"a"},
		want:     values{"a": "second"},
		findings: []string{"missing  config-map:NS/missing", "denied b config-map:NS/second", "denied b " + node},
		origins:  []string{"config-map:NS/second"}, requests: 3,
	},
	{
		name:       "deny",
		configMaps: map[string]values{"cilium-config": {"a": "cm"}}, annotations: values{"config.cilium.io/a": "n", "config.cilium.io/b": "n", "config.cilium.io/new": "n"},
		sources: three, deny: []string{"a", "new"},
		want:     values{"a": "cm", "b": "n"},
		findings: []string{"denied a " + node, "denied new " + node},
		origins:  []string{cm, node}, requests: 3,
	},
	{
		name:       "allow wins over deny",
		configMaps: map[string]values{"cilium-config": {"a": "cm"}}, annotations: values{"config.cilium.io/a": "n", "config.cilium.io/b": "n"},
		sources: three, allow: []string{"a"}, deny: []string{"a"},
		want:     values{"a": "n"},
		findings: []string{"denied b " + node},
		origins:  []string{cm, node}, requests: 3,
	},
	{
		name:        "a source without a key left is no source",
		configMaps:  map[string]values{"cilium-config": {"a": "cm"}, "empty": {}},
		nodeConfigs: []nodeConfig{{"x", `{}`, values{"b": "cr"}}},
		annotations: values{"config.cilium.io/b": "n", "other/key": "n"},
		sources:     []string{"config-map", "config-map:empty", "cilium-node-config", "node"}, deny: []string{"b"},
		want:     values{"a": "cm"},
		findings: []string{"empty  config-map:NS/empty", "denied b " + cr + "x", "denied b " + node},
		origins:  []string{cm}, requests: 4,
	},
	{
		name:       "selectors",
		configMaps: map[string]values{"cilium-config": {"a": "cm"}},
		labels:     values{"zone": "a", "gpu": ""},
		nodeConfigs: []nodeConfig{
			{"absent", ``, values{"absent": "1"}},
			{"null", `null`, values{"null": "1"}},
			{"empty", `{}`, values{"empty": "1"}},
			{"label", `{"matchLabels":{"zone":"a"}}`, values{"label": "1"}},
			{"label-other", `{"matchLabels":{"zone":"b"}}`, values{"label-other": "1"}},
			{"labels-both", `{"matchLabels":{"zone":"a","gpu":"yes"}}`, values{"labels-both": "1"}},
			{"in", `{"matchExpressions":[{"key":"zone","operator":"In","values":["b","a"]}]}`, values{"in": "1"}},
			{"not-in", `{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}`, values{"not-in": "1"}},
			{"not-in-absent", `{"matchExpressions":[{"key":"rack","operator":"NotIn","values":["a"]}]}`, values{"not-in-absent": "1"}},
			{"exists", `{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}`, values{"exists": "1"}},
			{"exists-not", `{"matchExpressions":[{"key":"gpu","operator":"DoesNotExist"}]}`, values{"exists-not": "1"}},
			{"mixed", `{"matchLabels":{"zone":"a"},"matchExpressions":[{"key":"gpu","operator":"Exists"}]}`, values{"mixed": "1"}},
			{"no-defaults", `{}`, nil},
			{"empty-defaults", `{}`, values{}},
		},
		sources: three,
		want:    values{"a": "cm", "empty": "1", "label": "1", "in": "1", "not-in-absent": "1", "exists": "1", "mixed": "1"},
		origins: []string{cm, cr + "empty", cr + "exists", cr + "in", cr + "label", cr + "mixed", cr + "not-in-absent"}, requests: 3,
	},
	{
		name:        "a named node config counts whatever its selector",
		configMaps:  map[string]values{"cilium-config": {"a": "cm"}},
		nodeConfigs: []nodeConfig{{"mine", `{"matchLabels":{"no":"such"}}`, values{"a": "mine"}}, {"all", `{}`, values{"a": "all"}}},
		sources:     []string{"config-map", "cilium-node-config:NS/mine"},
		want:        values{"a": "mine"}, origins: []string{cm, cr + "mine"}, requests: 2,
	},
	{
		name:       "a named node config that is not there",
		configMaps: map[string]values{"cilium-config": {"a": "cm"}},
		sources:    []string{"config-map", "cilium-node-config:NS/none"},
		want:       values{"a": "cm"}, origins: []string{cm}, requests: 2,
	},
	{
		name:        "two node configs set one key: the later name wins, bytewise",
		nodeConfigs: []nodeConfig{{"b", `{}`, values{"k": "b"}}, {"a-9", `{}`, values{"k": "a-9"}}, {"a-10", `{}`, values{"k": "a-10"}}},
		sources:     []string{"cilium-node-config"},
		want:        values{"k": "b"}, origins: []string{cr + "a-10", cr + "a-9", cr + "b"},
		findings: []string{"doubled k " + cr + "a-9", "doubled k " + cr + "b"}, requests: 1,
	},
	{
		name:   "a label and an annotation set one key: the annotation wins",
		labels: values{"config.cilium.io/k": "label", "config.cilium.io/l": "label"}, annotations: values{"config.cilium.io/k": "annotation"},
		sources: []string{"node"},
		want:    values{"k": "annotation", "l": "label"}, origins: []string{node}, requests: 1,
	},
	{
		name: "prefixes",
		annotations: values{"config.cilium.io/k": "1", "my.config.cilium.io/a": "x", "io.cilium.config/b": "x", "config.cilium/c": "x",
			"config.cilium.io": "x"},
		sources: []string{"node"},
		want:    values{"k": "1"}, origins: []string{node}, requests: 1,
	},
	{
		name:        "prefixes that only look alike",
		annotations: values{"config.cilium.io/k": "1", "config.cilium.iox/evil": "x", "config.cilium.io.example.org/evil": "x"},
		sources:     []string{"node"},
		want:        values{"k": "1"}, origins: []string{node}, requests: 1,
		differs: "it compares the prefix without the slash",
	},
	{
		name:        "keys that are none",
		nodeConfigs: []nodeConfig{{"x", `{}`, values{"ok": "1", "../evil": "x", "a/b": "x", "..": "x", "sp ace": "x", "": "x"}}},
		sources:     []string{"cilium-node-config"},
		want:        values{"ok": "1"}, origins: []string{cr + "x"}, requests: 1,
		findings: []string{"invalid  " + cr + "x", "invalid .. " + cr + "x", "invalid ../evil " + cr + "x", "invalid a/b " + cr + "x", "invalid sp ace " + cr + "x"},
	},
	{
		name:       "the writer's own keys cannot be given",
		configMaps: map[string]values{"cilium-config": {"a": "1", "config-sources": "x", "config-sources-overrides": "x"}},
		sources:    []string{"config-map"},
		want:       values{"a": "1"}, origins: []string{cm}, requests: 1,
		findings: []string{"reserved config-sources " + cm, "reserved config-sources-overrides " + cm},
	},
	{
		name:        "values are kept as they are",
		configMaps:  map[string]values{"cilium-config": {"empty": "", "lines": "a\nb\n\n", "blanks": " x \t ", "crlf": "a\r\nb", "json": `{"a": "<&>"}`, "unicode": "grüß 🐝", "bool": "true", "number": "1.0"}},
		nodeConfigs: []nodeConfig{{"x", `{}`, values{"cr-empty": "", "cr-lines": "\n a \n"}}},
		annotations: values{"config.cilium.io/n-empty": "", "config.cilium.io/n-lines": " a\n "},
		sources:     three,
		want: values{"empty": "", "lines": "a\nb\n\n", "blanks": " x \t ", "crlf": "a\r\nb", "json": `{"a": "<&>"}`, "unicode": "grüß 🐝",
			"bool": "true", "number": "1.0", "cr-empty": "", "cr-lines": "\n a \n", "n-empty": "", "n-lines": " a\n "},
		origins: []string{cm, cr + "x", node}, requests: 3,
	},
	{
		name:       "a ConfigMap of 1 MiB",
		configMaps: map[string]values{"cilium-config": mebibyte},
		sources:    []string{"config-map"},
		want:       mebibyte, origins: []string{cm}, requests: 1,
	},
	{
		name:        "2,000 node configs",
		nodeConfigs: manyNodeConfigs(2000),
		labels:      values{"rack": "r7"},
		sources:     []string{"cilium-node-config"},
		want:        manyValues(2000),
		origins:     manyOrigins(2000), requests: 9, // eight pages, and the Node
		findings: manyFindings(2000),
	},
	{
		name: "no node is needed where no selector needs its labels", noNode: true,
		configMaps:  map[string]values{"cilium-config": {"a": "cm"}},
		nodeConfigs: []nodeConfig{{"x", `{}`, values{"b": "cr"}}, {"y", ``, values{"c": "cr"}}},
		sources:     []string{"config-map", "cilium-node-config"},
		want:        values{"a": "cm", "b": "cr"}, origins: []string{cm, cr + "x"}, requests: 2,
		differs: "it reads the Node wherever there is a node config, and ends when there is none",
	},
}

// mebibyte fills a ConfigMap to the last byte that the API allows.
var mebibyte = func() values {
	const limit, keys, blob = 1 << 20, 16, 3 // blob: key and value of createConfigMap's binaryData
	v, left := values{}, limit-len("blob")-blob
	for i := range keys {
		key := fmt.Sprintf("key-%02d", i)
		size := limit/keys - len(key)
		if i == keys-1 {
			size = left - len(key)
		}
		v[key] = strings.Repeat("0123456789abcdef", size/16+1)[:size]
		left -= len(key) + size
	}
	return v
}()

// manyNodeConfigs makes node configs that select one rack in a hundred each.
func manyNodeConfigs(n int) []nodeConfig {
	var list []nodeConfig
	for i := range n {
		list = append(list, nodeConfig{manyName(i), fmt.Sprintf(`{"matchLabels":{"rack":"r%d"}}`, i%100),
			values{"last": fmt.Sprint(i), fmt.Sprintf("key-%d", i): "1"}})
	}
	return list
}

func manyName(i int) string { return fmt.Sprintf("config-%05d", i) }

func manyValues(n int) values {
	v := values{}
	for i := 7; i < n; i += 100 {
		v["last"], v[fmt.Sprintf("key-%d", i)] = fmt.Sprint(i), "1"
	}
	return v
}

func manyOrigins(n int) (list []string) {
	for i := 7; i < n; i += 100 {
		list = append(list, cr+manyName(i))
	}
	return list
}

func manyFindings(n int) (list []string) {
	for i := 107; i < n; i += 100 {
		list = append(list, "doubled last "+cr+manyName(i))
	}
	return list
}

// fill replaces NS and NODE.
func (v vector) fill(texts []string) []string {
	var list []string
	for _, text := range texts {
		list = append(list, strings.NewReplacer("NS", v.namespace(), "NODE", v.node()).Replace(text))
	}
	return list
}

func (v vector) namespace() string { return slug(v.name)[:min(len(slug(v.name)), 40)] + "-ns" }
func (v vector) node() string      { return slug(v.name) }

func short(f configresolve.Finding) string {
	return fmt.Sprintf("%s %s %s", f.Problem, f.Key, f.Source)
}
