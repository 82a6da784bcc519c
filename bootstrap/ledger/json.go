// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// text holds any byte, which a JSON string does not: a backslash is doubled, and a byte
// that is not UTF-8 is written as \xNN.
type text string

// MarshalText escapes what JSON cannot hold.
func (t text) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(t)) && !strings.Contains(string(t), `\`) {
		return []byte(t), nil
	}
	var b bytes.Buffer
	for i := 0; i < len(t); {
		r, size := utf8.DecodeRuneInString(string(t[i:]))
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, t[i])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.Bytes(), nil
}

// UnmarshalText is the inverse of MarshalText.
func (t *text) UnmarshalText(raw []byte) error {
	var b strings.Builder
	for rest := string(raw); rest != ""; {
		before, after, escaped := strings.Cut(rest, `\`)
		b.WriteString(before)
		if rest = after; !escaped {
			break
		}
		if strings.HasPrefix(rest, `\`) {
			b.WriteByte('\\')
			rest = rest[1:]
			continue
		}
		if len(rest) < 3 || rest[0] != 'x' {
			return fmt.Errorf("%q has an escape that is neither \\\\ nor \\xNN", raw)
		}
		c, err := strconv.ParseUint(rest[1:3], 16, 8)
		if err != nil {
			return err
		}
		b.WriteByte(byte(c))
		rest = rest[3:]
	}
	*t = text(b.String())
	return nil
}

// unknown are the fields that a later version has recorded.
type unknown map[string]json.RawMessage

// unmarshal decodes a JSON object into the struct that v points to, and returns the fields
// that it does not have.
func unmarshal(raw []byte, v any) (unknown, error) {
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	known := fieldsOf(reflect.TypeOf(v).Elem())
	if known.haveAll(raw) {
		return nil, nil
	}
	var all unknown
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for name := range known {
		delete(all, name)
	}
	return all, nil
}

// marshal encodes a struct, and the fields of a later version.
func marshal(v any, more unknown) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil || len(more) == 0 {
		return raw, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, more)
	return json.Marshal(all)
}

// fields are the names that a struct has in JSON.
type fields map[string]bool

var knownFields sync.Map // by type

func fieldsOf(t reflect.Type) fields {
	if known, ok := knownFields.Load(t); ok {
		return known.(fields)
	}
	names := fields{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names[name] = true
		}
	}
	knownFields.Store(t, names)
	return names
}

// haveAll reports whether all fields of a valid JSON object are known. It spares nearly all
// objects a second decoding.
func (known fields) haveAll(object []byte) bool {
	depth, begin, inString, isName := 0, 0, false, false
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case inString && c == '\\':
			i++
		case inString && c == '"':
			if inString = false; isName && !known[string(object[begin:i])] {
				return false
			}
			isName = false
		case inString:
		case c == '"':
			inString, begin = true, i+1
		case c == '{' || c == '[':
			depth++
			isName = depth == 1
		case c == '}' || c == ']':
			depth--
		case c == ',':
			isName = depth == 1
		}
	}
	return true
}
