// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/configresolve"
)

// vector is one case of testdata/vectors.yaml, which says what the fields mean.
type vector struct {
	Name        string
	ConfigMaps  map[string]values `yaml:"configMaps"`
	NodeConfigs []nodeConfig      `yaml:"nodeConfigs"`
	Labels      values
	Annotations values
	NoNode      bool `yaml:"noNode"`

	Sources     []string
	Optional    bool
	Allow, Deny []string

	Want     values
	Origins  []string
	Findings []string
	Requests int
	Differs  string
}

var three = []string{"config-map", "cilium-node-config", "node"}

// vectors are those of the file, and two whose size makes them.
var vectors = append(read[vector]("testdata/vectors.yaml"), vector{
	Name:       "a ConfigMap of 1 MiB",
	ConfigMaps: map[string]values{"cilium-config": mebibyte()},
	Sources:    []string{"config-map"},
	Want:       mebibyte(), Origins: []string{"config-map:NS/cilium-config"}, Requests: 1,
}, manyVector(2000))

// read reads the list in a file.
func read[T any](file string) (list []T) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &list)
	}
	if err != nil {
		panic(err)
	}
	return list
}

// mebibyte fills a ConfigMap to the last byte that the API allows.
func mebibyte() values {
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
}

// manyVector has node configs that select one rack in a hundred each.
func manyVector(n int) vector {
	v := vector{Name: "2,000 node configs", Labels: values{"rack": "r7"}, Sources: []string{"cilium-node-config"}, Want: values{}, Requests: 9} // eight pages, and the Node
	for i := range n {
		key := fmt.Sprintf("key-%d", i)
		v.NodeConfigs = append(v.NodeConfigs, nodeConfig{manyName(i), fmt.Sprintf(`{"matchLabels":{"rack":"r%d"}}`, i%100), values{"last": fmt.Sprint(i), key: "1"}})
		if i%100 != 7 {
			continue
		}
		source := "cilium-node-config:NS/" + manyName(i)
		v.Want["last"], v.Want[key] = fmt.Sprint(i), "1"
		v.Origins = append(v.Origins, source)
		if i > 7 {
			v.Findings = append(v.Findings, "doubled last "+source)
		}
	}
	return v
}

func manyName(i int) string { return fmt.Sprintf("config-%05d", i) }

// fill replaces NS and NODE.
func (v vector) fill(texts []string) []string {
	var list []string
	for _, text := range texts {
		list = append(list, strings.NewReplacer("NS", v.namespace(), "NODE", v.node()).Replace(text))
	}
	return list
}

func (v vector) namespace() string { return slug(v.Name)[:min(len(slug(v.Name)), 40)] + "-ns" }
func (v vector) node() string      { return slug(v.Name) }

func short(f configresolve.Finding) string {
	return fmt.Sprintf("%s %s %s", f.Problem, f.Key, f.Source)
}
