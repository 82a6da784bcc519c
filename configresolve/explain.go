// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Explanation lists the provenance of values. Its JSON form has the keys "keys",
// "sources" and "findings", none of which is ever null.
type Explanation struct {
	Keys []Entry `json:"keys"`
	// Sources lists, in order, every object that contributed: one for each layer of each
	// source in which validation and policy left at least one key.
	Sources []Ref `json:"sources"`
	// Findings are about these keys, or about no key. They are in the order of the sources
	// and, within one object of a source, by key.
	Findings []Finding `json:"findings"`

	revealed bool
}

// Explain explains keys, in the order given. If none are given, it explains every
// key that any source gave, sorted. A key that no source gave has an entry with Set
// false.
func (c *Config) Explain(keys ...string) Explanation {
	all := len(keys) == 0
	if all {
		keys = slices.Sorted(maps.Keys(c.entries))
	}
	x := Explanation{Keys: []Entry{}, Sources: append([]Ref{}, c.sources...), Findings: []Finding{}, revealed: c.revealed}
	for _, key := range keys {
		x.Keys = append(x.Keys, c.explain(key))
	}
	for _, f := range c.findings {
		if all || f.Key == "" || slices.Contains(keys, f.Key) {
			x.Findings = append(x.Findings, f)
		}
	}
	return x
}

func (c *Config) explain(key string) Entry {
	e, ok := c.entries[key]
	if !ok {
		return Entry{Key: key}
	}
	copied := *e
	copied.Overrode, copied.Denied = slices.Clone(e.Overrode), slices.Clone(e.Denied)
	return copied
}

// String formats x for people: a line for each key with its value and source, below
// it the overridden and denied values, and at the end the findings that belong to
// none of the keys. Values are quoted, so that each takes one line. Private keys,
// credentials in URLs, and the values of keys that look secret are masked: whose name
// contains password, passwd, passphrase, secret, token, credential, psk, kubeconfig or
// dockerconfig, or names a key that is private, pre-shared, or for an API, access,
// encryption, authentication, TLS, fast open, a client, a server or an authority
// ("etcd-password", "api_key", "tls.key"). A name that ends in namespace, file, path or
// dir is only the location of a secret. JSON contains all values, and so does the text if the
// resolver has Revealed.
func (x Explanation) String() string {
	var b strings.Builder
	for _, e := range x.Keys {
		e.write(&b, x.revealed)
	}
	for _, f := range x.Findings {
		if f.Problem != problemDenied { // shown below its key
			fmt.Fprintf(&b, "! %s\n", f)
		}
	}
	return b.String()
}

func (e Entry) write(b *strings.Builder, revealed bool) {
	value := func(v string) string { return shownValue(e.Key, v, revealed) }
	if e.Set {
		fmt.Fprintf(b, "%s = %s from %s\n", e.Key, value(e.Value), origin(e.Source, e.Part))
	} else {
		fmt.Fprintf(b, "%s is not set\n", quote(e.Key))
	}
	for _, g := range slices.Backward(e.Overrode) {
		fmt.Fprintf(b, "    overrides %s from %s\n", value(g.Value), origin(g.Source, g.Part))
	}
	for _, g := range e.Denied {
		fmt.Fprintf(b, "    denied %s from %s: %s\n", value(g.Value), origin(g.Source, g.Part), g.Rule)
	}
}

func origin(source Ref, part string) string {
	text := source.String()
	if part != "" {
		text += " (" + part + ")"
	}
	return printable.Line(text) // the server determines an object's name
}
