// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"bytes"
	"encoding/json"
	"errors"
)

// jsonFields reads a valid JSON text to the depth that a manifest has.
func jsonFields(content []byte) ([]field, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	if bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil, nil
	}
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.Join(errors.New("it holds no map of keys"), err)
	}
	return jsonMap(decoder, true)
}

// jsonMap reads the rest of a map after its opening brace.
func jsonMap(decoder *json.Decoder, nested bool) ([]field, error) {
	var fields []field
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		f, err := jsonField(raw, nested)
		if err != nil {
			return nil, err
		}
		f.key = key
		fields = append(fields, f)
	}
	return fields, nil
}

func jsonField(raw json.RawMessage, nested bool) (f field, err error) {
	switch raw[0] {
	case '{':
		f.isMap = true
		if nested {
			inner := json.NewDecoder(bytes.NewReader(raw))
			if _, err := inner.Token(); err != nil {
				return f, err
			}
			f.fields, err = jsonMap(inner, false)
		}
	case '[':
	case '"':
		f.scalar = true
		err = json.Unmarshal(raw, &f.value)
	case 'n':
		f.scalar = true
	default: // a number or a boolean, as it is written
		f.scalar, f.value = true, string(raw)
	}
	return f, err
}
