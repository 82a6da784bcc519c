// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"encoding/json"
	"slices"
)

// listText is the text of a list of plugins. It is edited as a text: all that is not the
// plugin's stays byte for byte as its owner wrote it.
type listText []byte

// element is a value's place in a listText.
type element struct {
	name       string // of an object's member; of a plugin, its type; empty: a runtime would refuse it
	start, end int
}

// plugins finds the plugins as libcni does: of several "plugins" the last counts. What is no
// valid list has none.
func (l listText) plugins() (all []element) {
	if !json.Valid(l) {
		return nil
	}
	for _, member := range l.values('{', 0) {
		if member.name == "plugins" {
			all = l.values('[', member.start)
		}
	}
	for i, e := range all {
		all[i].name, _ = pluginName(l[e.start:e.end]) // without a type, it is none of ours
	}
	return all
}

// values finds the values of the object or array that starts there, in a valid text.
func (l listText) values(open json.Delim, start int) (all []element) {
	dec := json.NewDecoder(bytes.NewReader(l[start:]))
	if token, _ := dec.Token(); token != open {
		return nil
	}
	for dec.More() {
		var e element
		if open == '{' {
			key, _ := dec.Token()
			e.name, _ = key.(string)
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return nil
		}
		e.end = start + int(dec.InputOffset())
		e.start = e.end - len(raw)
		all = append(all, e)
	}
	return all
}

// find returns the text of the first plugin of the type, or nil. A list of that plugin alone is
// its agent's own, and chained to nothing.
func (l listText) find(plugin string) []byte {
	all := l.plugins()
	i := slices.IndexFunc(all, func(e element) bool { return e.name == plugin })
	if i < 0 || !slices.ContainsFunc(all, func(e element) bool { return e.name != plugin }) {
		return nil
	}
	return l[all[i].start:all[i].end]
}

// put puts text in the place of the first plugin of the type, or else behind the last of all.
func (l listText) put(plugin string, text []byte) listText {
	all := l.plugins()
	if len(all) == 0 || l.find(plugin) != nil {
		return l.replace(plugin, text)
	}
	end := all[len(all)-1].end
	return slices.Concat(l[:end], []byte(", "), text, l[end:])
}

// replace puts text in the place of the first plugin of the type, and takes any further ones
// out. No text: all of them, each with its comma. A list of nothing else stays.
func (l listText) replace(plugin string, text []byte) (edited listText) {
	all := l.plugins()
	for i, e := range all {
		own := l[e.start:e.end]
		if e.name == plugin {
			if text == nil {
				continue
			}
			own, text = text, nil
		}
		gap := l[:all[0].start]
		if edited != nil {
			gap = l[all[i-1].end:e.start] // a comma
		}
		edited = slices.Concat(edited, gap, own)
	}
	if edited == nil {
		return l
	}
	return append(edited, l[all[len(all)-1].end:]...)
}
