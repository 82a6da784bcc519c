// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// listText is the text of a list of plugins. It is edited as a text: all that is not the
// plugin's stays byte for byte as its owner wrote it.
type listText []byte

// element is a plugin's place in a listText.
type element struct {
	plugin     string // its type; empty: a runtime would refuse it
	start, end int
}

// elements finds the plugins as libcni does: of several "plugins" the last counts.
func (l listText) elements() (all []element, err error) {
	dec := json.NewDecoder(bytes.NewReader(l))
	if err := expect(dec, '{'); err != nil {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if key != "plugins" {
			var other json.RawMessage
			if err := dec.Decode(&other); err != nil {
				return nil, err
			}
			continue
		}
		if all, err = array(dec); err != nil {
			return nil, err
		}
	}
	return all, expect(dec, '}')
}

func array(dec *json.Decoder) (all []element, err error) {
	if err := expect(dec, '['); err != nil {
		return nil, err
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		plugin, _ := pluginName(raw) // without a type, it is none of ours
		all = append(all, element{plugin, end - len(raw), end})
	}
	return all, expect(dec, ']')
}

func expect(dec *json.Decoder, delim json.Delim) error {
	if t, err := dec.Token(); err != nil || t != delim {
		return errors.Join(fmt.Errorf("no %v where a list of plugins has one", delim), err)
	}
	return nil
}

// find returns the text of the first plugin of the type, or nil. A list of that plugin alone is
// its agent's own, and chained to nothing.
func (l listText) find(plugin string) []byte {
	all, err := l.elements()
	i := slices.IndexFunc(all, func(e element) bool { return e.plugin == plugin })
	if err != nil || i < 0 || !slices.ContainsFunc(all, func(e element) bool { return e.plugin != plugin }) {
		return nil
	}
	return l[all[i].start:all[i].end]
}

// put puts text in the place of the first plugin of the type, or else behind the last of all.
func (l listText) put(plugin string, text []byte) listText {
	if l.find(plugin) != nil {
		return l.replace(plugin, text)
	}
	all, err := l.elements()
	if err != nil || len(all) == 0 {
		return l
	}
	end := all[len(all)-1].end
	return slices.Concat(l[:end], []byte(", "), text, l[end:])
}

// replace puts text in the place of the first plugin of the type, and takes any further ones
// out. No text: all of them, each with its comma. A list of nothing else stays.
func (l listText) replace(plugin string, text []byte) (edited listText) {
	all, err := l.elements()
	for i, e := range all {
		own := l[e.start:e.end]
		if e.plugin == plugin {
			if text == nil {
				continue
			}
			own, text = text, nil
		}
		if edited == nil {
			edited = slices.Clone(l[:all[0].start])
		} else {
			edited = append(edited, l[all[i-1].end:e.start]...)
		}
		edited = append(edited, own...)
	}
	if err != nil || edited == nil {
		return l
	}
	return append(edited, l[all[len(all)-1].end:]...)
}
