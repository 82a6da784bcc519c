// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decode fills the struct that v points to with c's values, by the tags of its
// fields:
//
//	type Settings struct {
//		Mode    string        `config:"routing-mode" default:"tunnel"`
//		MTU     int           `config:"mtu"`
//		Period  time.Duration `config:"gc-interval" default:"5m"`
//		Devices []string      `config:"devices"`
//		Cluster string        `config:"cluster-name,required"`
//	}
//
// If no source set a key, its field gets the default or, without one, does not
// change; with required, the error then matches [ErrUnset]. Fields without the tag
// are ignored, and the fields of an embedded struct count as v's own.
//
// A string field gets the value byte for byte. For all other types, white space
// around the value is ignored. They are: a bool (1, t, true, 0, f, false in any
// case), an integer (also as 0x1f) or floating-point number within its type's
// range, a [time.Duration], a list of strings or of any of these, separated by
// commas or white space, a map[string]string of KEY=VALUE separated by commas, and
// any other [encoding.TextUnmarshaler], such as a netip.Prefix. A
// pointer to one of these is nil unless the key is set or has a default.
//
// Decode returns all errors joined, each with its key and source, and still sets
// the fields that it can. A key that v does not have is no error: see [Keys].
func Decode(c *Config, v any) error {
	fields, err := fieldsOf(v)
	errs := []error{err}
	for _, f := range fields {
		errs = append(errs, f.decode(c))
	}
	return errors.Join(errs...)
}

// Keys lists the keys that [Decode] reads into v, in the order of its fields. Pass
// them to [Config.Unknown] to find set keys that v does not have.
func Keys(v any) []string {
	fields, _ := fieldsOf(v) // Decode reports errors in v
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// target is one field of a struct that is decoded into.
type target struct {
	key      string
	required bool
	standby  string // the default
	has      bool   // a default
	value    reflect.Value
}

func fieldsOf(v any) ([]target, error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("decode into a %T: it must be a pointer to a struct", v)
	}
	fields, errs := collect(p.Elem(), nil)
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			errs = append(errs, fmt.Errorf("decode into a %T: two fields have the key %s", v, quote(f.key)))
		}
		seen[f.key] = true
	}
	return fields, errors.Join(errs...)
}

func collect(s reflect.Value, fields []target) ([]target, []error) {
	var errs []error
	for i := range s.NumField() {
		t := s.Type().Field(i)
		tag, tagged := t.Tag.Lookup("config")
		switch {
		case !tagged && t.Anonymous && t.Type.Kind() == reflect.Struct:
			var more []error
			fields, more = collect(s.Field(i), fields)
			errs = append(errs, more...)
			continue
		case !tagged:
			continue
		case !t.IsExported():
			errs = append(errs, fmt.Errorf("decode into a %s: field %s cannot be set: its name must start with a capital", s.Type(), t.Name))
			continue
		}
		f := target{value: s.Field(i)}
		var option string
		f.key, option, _ = strings.Cut(tag, ",")
		f.required = option == "required"
		f.standby, f.has = t.Tag.Lookup("default")
		if f.key == "" || option != "" && !f.required {
			errs = append(errs, fmt.Errorf("decode into a %s: field %s has the tag %q: it must be a key, or a key and \",required\"", s.Type(), t.Name, tag))
			continue
		}
		fields = append(fields, f)
	}
	return fields, errs
}

// decode sets the field to the key's value or the default.
func (f target) decode(c *Config) error {
	_, set := c.Lookup(f.key)
	switch {
	case set || f.required:
		_, err := get(c, f.key, func(value string) (struct{}, error) { return struct{}{}, decodeValue(f.value, value) })
		return err
	case f.has:
		if err := decodeValue(f.value, f.standby); err != nil {
			return fmt.Errorf("config key %s: its default: %w", quote(f.key), err)
		}
	}
	return nil
}

var durationType = reflect.TypeFor[time.Duration]()

// decodeValue sets v, or returns an error and does not change v.
func decodeValue(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		to := reflect.New(v.Type().Elem())
		if err := decodeValue(to.Elem(), text); err != nil {
			return err
		}
		v.Set(to)
		return nil
	}
	trimmed := strings.TrimSpace(text)
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(trimmed))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Slice:
		return decodeList(v, trimmed)
	case reflect.Map:
		return decodeMap(v, trimmed)
	default:
		return decodeScalar(v, trimmed)
	}
	return nil
}

func decodeScalar(v reflect.Value, text string) error {
	switch kind := v.Kind(); {
	case kind == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return fmt.Errorf("%s is neither true nor false", quote(text))
		}
		v.SetBool(b)
	case v.Type() == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s is not a duration such as 1m30s", quote(text))
		}
		v.SetInt(int64(d))
	case v.CanInt():
		n, err := strconv.ParseInt(text, 0, v.Type().Bits())
		if err != nil {
			return notInRange(text, v, err)
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 0, v.Type().Bits())
		if err != nil {
			return notInRange(text, v, err)
		}
		v.SetUint(n)
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s is not a number that fits into a %s", quote(text), v.Type())
		}
		v.SetFloat(n)
	default:
		return fmt.Errorf("a field of the type %s cannot be decoded into", v.Type())
	}
	return nil
}

func notInRange(text string, v reflect.Value, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s does not fit into a %s", quote(text), v.Type())
	}
	return fmt.Errorf("%s is not a whole number for a %s", quote(text), v.Type())
}

// decodeList sets v to the list's elements; an empty list, unlike a missing one,
// is not nil.
func decodeList(v reflect.Value, text string) error {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	list := reflect.MakeSlice(v.Type(), len(words), len(words))
	for i, word := range words {
		if err := decodeValue(list.Index(i), word); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

func decodeMap(v reflect.Value, text string) error {
	m, ok := v.Addr().Interface().(*map[string]string)
	if !ok {
		return fmt.Errorf("a field of the type %s cannot be decoded into: of maps, only map[string]string", v.Type())
	}
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		_, twice := pairs[key]
		switch {
		case key == "" && !found:
			continue // as after a last comma
		case key == "" || !found:
			return fmt.Errorf("%s is not KEY=VALUE", quote(pair))
		case twice:
			return fmt.Errorf("%s occurs twice", quote(key))
		}
		pairs[key] = value
	}
	*m = pairs
	return nil
}
