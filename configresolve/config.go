// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
)

// Config is the result of a resolution: values with their provenance. It is
// immutable, and may be read from several goroutines.
type Config struct {
	entries     map[string]*Entry
	trusted     map[string]string // values from sources trusted with destructive keys
	findings    []Finding
	sources     []Ref
	allow, deny []string
	revealed    bool
}

// Entry is one key: its value, where the value came from, and which values it
// overrode.
type Entry struct {
	Key string `json:"key"`
	Set bool   `json:"set"` // false if every source that gave the key was denied
	Given
	Overrode []Given `json:"overrode,omitempty"` // weakest first
	Denied   []Given `json:"denied,omitempty"`   // in the order of the sources
}

// Given is a value that a source gave.
type Given struct {
	Value  string `json:"value"`
	Source Ref    `json:"source,omitzero"`
	Part   string `json:"part,omitempty"` // part of the object, such as "annotations"
	Rule   string `json:"rule,omitempty"` // why it was denied: "not in the allow list" or "in the deny list"
}

func newConfig(r Resolver) *Config {
	return &Config{
		entries: map[string]*Entry{},
		trusted: map[string]string{},
		allow:   slices.Clone(r.AllowKeys),
		deny:    slices.Clone(r.DenyKeys),

		revealed: r.Revealed,
	}
}

func (c *Config) entry(key string) *Entry {
	e, ok := c.entries[key]
	if !ok {
		e = &Entry{Key: key}
		c.entries[key] = e
	}
	return e
}

func (c *Config) set(key string, g Given) {
	e := c.entry(key)
	if e.Set {
		e.Overrode = append(e.Overrode, e.Given)
	}
	e.Set, e.Given = true, g
}

func (c *Config) refuse(key string, g Given) {
	e := c.entry(key)
	e.Denied = append(e.Denied, g)
	c.report(Finding{Problem: problemDenied, Key: key, Source: g.Source, Part: g.Part, Reason: g.Rule})
}

func (c *Config) report(f Finding) { c.findings = append(c.findings, f) }

// used records the objects of a source that set a key, each once.
func (c *Config) used(layers []Layer) {
	start := len(c.sources)
	for _, layer := range layers {
		if !slices.Contains(c.sources[start:], layer.Ref) {
			c.sources = append(c.sources, layer.Ref)
		}
	}
}

// Lookup returns the value of key, and whether a source set it.
func (c *Config) Lookup(key string) (string, bool) {
	e, ok := c.entries[key]
	if !ok || !e.Set {
		return "", false
	}
	return e.Value, true
}

// Trusted is [Config.Lookup] for a destructive key, such as clean-cilium-state. It
// returns the value only if the first source in the list, unless that is a Node, or
// the environment ([Env]) or the program itself ([Static]) has set the key to it.
// Many more users may annotate a Node, or write a later source, than may destroy a
// node's state.
func (c *Config) Trusted(key string) (string, bool) {
	value, ok := c.Lookup(key)
	trusted, set := c.trusted[key]
	if !ok || !set || trusted != value {
		return "", false
	}
	return value, true
}

// All yields every key that is set with its value, sorted by key.
func (c *Config) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(c.entries)) {
			if e := c.entries[key]; e.Set && !yield(key, e.Value) {
				return
			}
		}
	}
}

// Data returns the keys to write for an agent: every key that is set, and the two
// that describe the resolution, config-sources and config-sources-overrides.
func (c *Config) Data() map[string]string {
	data := make(map[string]string, len(c.entries)+2)
	for key, e := range c.entries {
		if e.Set {
			data[key] = e.Value
		}
	}
	data[keySources] = c.sourcesJSON()
	data[keyOverrides] = c.overridesJSON()
	return data
}

// sourcesJSON lists only the objects that live in the cluster: agents start a
// watch for each entry, and Cilium 1.18 does not start with a kind it does not
// know.
func (c *Config) sourcesJSON() string {
	listed := []Ref{}
	for _, ref := range c.sources {
		if ref.Cluster() {
			listed = append(listed, ref)
		}
	}
	return marshal(listed)
}

func (c *Config) overridesJSON() string {
	list := func(keys []string) []string { return append([]string{}, keys...) }
	return marshal(struct {
		Allow []string `json:"allowConfigKeys"`
		Deny  []string `json:"denyConfigKeys"`
	}{list(c.allow), list(c.deny)})
}

// marshal encodes a value made only of strings, which cannot fail.
func marshal(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
