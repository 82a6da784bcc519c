// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniresult

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// implied are the plugins that a plugin runs without its configuration naming them:
// flannel delegates to bridge and host-local by default (delegateAdd in
// flannel-io/cni-plugin).
var implied = map[string][]string{"flannel": {"bridge", "host-local"}}

// Names reports whether a configuration, a list or that of a single plugin, names the
// plugin: as a type of its own, of an ipam or of a delegate, however deep. In a text that
// is not JSON, each word that is the plugin's name counts.
func Names(conf []byte, plugin string) bool {
	var any any
	if json.Unmarshal(conf, &any) != nil {
		return hasWord(conf, plugin)
	}
	return hasType(any, func(typ string) bool { return typ == plugin || slices.Contains(implied[typ], plugin) })
}

// Covers reports whether a configuration names each plugin that another one, in JSON,
// names.
func Covers(conf, other []byte) bool {
	var any any
	return json.Unmarshal(other, &any) == nil && !hasType(any, func(typ string) bool { return !Names(conf, typ) })
}

// hasType reports whether a type in the value, however deep, is one of those.
func hasType(value any, is func(typ string) bool) bool {
	has := func(v any) bool { return hasType(v, is) }
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, has)
	case map[string]any:
		for key, v := range value {
			typ, isText := v.(string)
			if isText && strings.EqualFold(key, "type") && is(typ) || has(v) {
				return true
			}
		}
	}
	return false
}

// hasWord reports whether the text has the word, not only as part of a longer one.
func hasWord(text []byte, word string) bool {
	for len(word) > 0 {
		at := bytes.Index(text, []byte(word))
		if at < 0 {
			return false
		}
		end := at + len(word)
		if (at == 0 || !isOfWord(text[at-1])) && (end == len(text) || !isOfWord(text[end])) {
			return true
		}
		text = text[at+1:]
	}
	return false
}

// isOfWord reports whether c occurs in file names of plugins.
func isOfWord(c byte) bool {
	return c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}
