// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"strings"
	"sync"
)

// The fields that this version knows of each kind of record.
var (
	entryFields  = sync.OnceValue(func() fields { return fieldsOf(Entry{}) })
	stateFields  = sync.OnceValue(func() fields { return fieldsOf(State{}) })
	ownerFields  = sync.OnceValue(func() fields { return fieldsOf(owner{}) })
	leftFields   = sync.OnceValue(func() fields { return fieldsOf(Left{}) })
	headerFields = sync.OnceValue(func() fields { return fieldsOf(header{}) })
)

// fields are names in JSON.
type fields map[string]bool

// fieldsOf lists the fields of a struct, and those of the envelope.
func fieldsOf(v any) fields {
	known := fields{}
	for _, t := range []reflect.Type{reflect.TypeOf(v), reflect.TypeFor[envelope]()} {
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
				known[name] = true
			}
		}
	}
	return known
}

// unmarshalKeeping decodes into v, and returns the unknown fields.
func unmarshalKeeping(text []byte, v any, known fields) (unknown map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(text, v); err != nil || known.haveAll(text) {
		return nil, err
	}
	if err := json.Unmarshal(text, &unknown); err != nil {
		return nil, err
	}
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool { return known[name] })
	return unknown, nil
}

func marshalWith(v any, unknown map[string]json.RawMessage) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil || len(unknown) == 0 {
		return text, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, unknown)
	return json.Marshal(all)
}

// haveAll reports whether all fields of an object are known. It avoids the second
// decoding of objects without others, which are nearly all.
func (known fields) haveAll(object []byte) bool {
	for name := range namesIn(object) {
		if !known[string(name)] {
			return false
		}
	}
	return true
}

// namesIn yields the names of the fields of a JSON object, which must be valid, as they
// are spelled there.
func namesIn(object []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		depth, begin, inString, name := 0, 0, false, false
		for i := 0; i < len(object); i++ {
			switch c := object[i]; {
			case inString && c == '\\':
				i++
			case inString && c == '"':
				inString = false
				if name && !yield(object[begin:i]) {
					return
				}
				name = false
			case inString:
			case c == '"':
				inString, begin = true, i+1
			case c == '{' || c == '[':
				depth++
				name = depth == 1
			case c == '}' || c == ']':
				depth--
			case c == ',':
				name = depth == 1
			}
		}
	}
}
