// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text holds any byte, which a JSON string does not. If it has a backslash or is not UTF-8,
// it is written with the escapes of Go.
type text string

// MarshalText escapes what JSON cannot hold.
func (t text) MarshalText() ([]byte, error) { return []byte(t.escaped()), nil }

func (t text) escaped() string {
	if utf8.ValidString(string(t)) && !strings.Contains(string(t), `\`) {
		return string(t)
	}
	quoted := strconv.Quote(string(t))
	return quoted[1 : len(quoted)-1]
}

// UnmarshalText is the inverse of MarshalText.
func (t *text) UnmarshalText(raw []byte) error {
	if !bytes.Contains(raw, []byte(`\`)) {
		*t = text(raw)
		return nil
	}
	s, err := strconv.Unquote(`"` + string(raw) + `"`)
	*t = text(s)
	return err
}

// convert converts texts to strings, or back.
func convert[To, From ~string](list []From) (all []To) {
	for _, s := range list {
		all = append(all, To(s))
	}
	return all
}

// unknown are the fields that a later version has recorded. The head, records and claims
// keep theirs.
type unknown map[string]json.RawMessage

// unmarshal decodes a JSON object, and the fields that T does not have into more. Nearly all
// objects have none, and are decoded once.
func unmarshal[T any](raw []byte, to *T, more *unknown) error {
	var exact, known T
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if strict.Decode(&exact) == nil {
		*to = exact
		return nil
	}
	var all unknown
	err := errors.Join(json.Unmarshal(raw, &known), json.Unmarshal(raw, &all))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(all, name)
	}
	*to, *more = known, all
	return err
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
