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
//		Mode    string        `config:"routing-mode"`
//		MTU     int           `config:"mtu"`
//		Period  time.Duration `config:"gc-interval"`
//		Devices []string      `config:"devices"`
//		Cluster string        `config:"cluster-name,required"`
//	}
//
// If no source set a key, its field stays as it is, such as at a default; with
// required, that is an error. Fields without the tag are ignored, and
// the fields of an embedded struct count as v's own.
//
// A string field gets the value byte for byte. For all other types, white space
// around the value is ignored. They are: a bool (1, t, true, 0, f, false in any
// case), an integer (also as 0x1f) or floating-point number within its type's
// range, a [time.Duration], a list of strings or of any of these, separated by
// commas or white space, and any other [encoding.TextUnmarshaler], such as a
// netip.Prefix.
//
// Decode returns all errors joined, each with its key and source, and still sets
// the fields that it can. A key that v does not have is no error: see [Config.Unknown].
func Decode(c *Config, v any) error {
	fields, err := fieldsOf(v)
	errs := []error{err}
	for _, f := range fields {
		if _, set := c.Lookup(f.key); !set && !f.required {
			continue
		}
		errs = append(errs, c.parse(f.key, func(value string) error { return decodeValue(f.value, value) }))
	}
	return errors.Join(errs...)
}

// target is one field of a struct that is decoded into.
type target struct {
	key      string
	required bool
	value    reflect.Value
}

func fieldsOf(v any) (fields []target, err error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("decode into a %T: it must be a pointer to a struct", v)
	}
	seen := map[string]bool{}
	for _, field := range reflect.VisibleFields(p.Elem().Type()) {
		tag, tagged := field.Tag.Lookup("config")
		if !tagged {
			continue
		}
		f, fieldErr := targetOf(p.Elem(), field, tag)
		switch {
		case fieldErr != nil:
			err = errors.Join(err, fmt.Errorf("decode into a %T: field %s %w", v, field.Name, fieldErr))
			continue
		case seen[f.key]:
			err = errors.Join(err, fmt.Errorf("decode into a %T: two fields have the key %s", v, quote(f.key)))
		}
		seen[f.key] = true
		fields = append(fields, f)
	}
	return fields, err
}

// targetOf reads the tags of a field of s. Its error continues a sentence about the field.
func targetOf(s reflect.Value, field reflect.StructField, tag string) (f target, err error) {
	var option string
	f.key, option, _ = strings.Cut(tag, ",")
	f.required = option == "required"
	switch {
	case !field.IsExported():
		return f, errors.New("cannot be set: its name must start with a capital")
	case f.key == "" || option != "" && !f.required:
		return f, fmt.Errorf("has the tag %q: it must be a key, or a key and \",required\"", tag)
	}
	f.value, err = s.FieldByIndexErr(field.Index)
	return f, err
}

// decodeValue sets v, or returns an error and does not change v.
func decodeValue(v reflect.Value, text string) error {
	trimmed := strings.TrimSpace(text)
	switch p := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(trimmed))
	case *time.Duration:
		d, err := time.ParseDuration(trimmed)
		if err != nil {
			return fmt.Errorf("%s is not a duration such as 1m30s", quote(trimmed))
		}
		*p = d
		return nil
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(text)
	case kind == reflect.Slice:
		return decodeList(v, trimmed)
	case kind == reflect.Bool || v.CanInt() || v.CanUint() || v.CanFloat():
		value := reflect.New(v.Type()).Elem()
		if !setScalar(value, trimmed) {
			return fmt.Errorf("%s does not fit into a field of the type %s", quote(trimmed), v.Type())
		}
		v.Set(value)
	default:
		return fmt.Errorf("a field of the type %s cannot be decoded into", v.Type())
	}
	return nil
}

// setScalar sets a bool or a number, and reports whether text is one of v's size.
func setScalar(v reflect.Value, text string) bool {
	switch {
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		v.SetBool(b)
		return err == nil
	case v.CanInt():
		n, err := strconv.ParseInt(text, 0, v.Type().Bits())
		v.SetInt(n)
		return err == nil
	case v.CanUint():
		n, err := strconv.ParseUint(text, 0, v.Type().Bits())
		v.SetUint(n)
		return err == nil
	}
	n, err := strconv.ParseFloat(text, v.Type().Bits())
	v.SetFloat(n)
	return err == nil
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
