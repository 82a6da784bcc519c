// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package ownershipfile reads what an agent owns from a YAML file, in place of
// a preset such as [cleanup.Cilium]. It is no part of package cleanup, so that
// who describes an agent in Go links no YAML.
//
// The fields are those of [cleanup.Ownership] by the names that it has in JSON;
// ownership.schema.json, beside this package, describes them to an editor. A
// file that has other fields is an error, as is one that owns nothing, or what
// others have: see [cleanup.Ownership.Validate].
//
// It needs nothing of the system, and works on every one.
package ownershipfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/cleanup"
)

// Parse reads the one document of content, whose size is the caller's to bound,
// and validates it. The error names the lines of all fields that are unknown, or
// of another type; only where there are none, the first rule that is not valid.
func Parse(content []byte) (cleanup.Ownership, error) {
	var own cleanup.Ownership
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	if err := d.Decode(&own); err != nil && !errors.Is(err, io.EOF) {
		return cleanup.Ownership{}, fmt.Errorf("ownership file: %w", byLine(err))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return cleanup.Ownership{}, errors.New("ownership file: want one document")
	}
	if isEmpty(own) {
		return own, errors.New("ownership file: it owns nothing")
	}
	if err := own.Validate(); err != nil {
		return cleanup.Ownership{}, fmt.Errorf("ownership file: %w", err)
	}
	return own, nil
}

// byLine makes an error of each mistake that the decoder found.
func byLine(err error) error {
	var mistakes *yaml.TypeError
	if !errors.As(err, &mistakes) {
		return err
	}
	var errs []error
	for _, text := range mistakes.Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// isEmpty reports whether nothing is set but whose it is, and no list has an element.
func isEmpty(own cleanup.Ownership) bool {
	own.Agent = ""
	v := reflect.ValueOf(own)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() > 0 || f.Kind() != reflect.Slice && !f.IsZero() {
			return false
		}
	}
	return true
}
