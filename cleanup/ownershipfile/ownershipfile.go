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
// It needs nothing of the system, and works on every one. [ReadFile] reads in the
// calling thread's mount namespace.
package ownershipfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/input"
)

// ErrInvalid is matched by the error for content that describes no ownership.
var ErrInvalid = errors.New("invalid ownership file")

// ReadFile parses the regular file at path, which may have 1 MiB. It is opened without
// waiting, so that no FIFO holds up the caller, and a symbolic link is followed, as that
// of a key in a mounted ConfigMap. If the file was read but is not valid, the error
// matches [ErrInvalid].
func ReadFile(ctx context.Context, path string) (cleanup.Ownership, error) {
	content, err := input.ReadFile(ctx, path, input.MaxOwnership)
	if err != nil {
		return cleanup.Ownership{}, fmt.Errorf("ownership file: %w", err)
	}
	own, err := Parse(content)
	if err != nil {
		return cleanup.Ownership{}, fmt.Errorf("%s: %w", path, err)
	}
	return own, nil
}

// Parse reads the one document of content, whose size is the caller's to bound,
// and validates it. The error names the lines of all fields that are unknown, or
// of another type; only where there are none, the first rule that is not valid. It
// matches [ErrInvalid].
func Parse(content []byte) (cleanup.Ownership, error) {
	own, err := parse(content)
	if err != nil {
		return cleanup.Ownership{}, invalid{err}
	}
	return own, nil
}

// invalid is an error of a file's content.
type invalid struct{ error }

func (i invalid) Error() string        { return "ownership file: " + i.error.Error() }
func (i invalid) Is(target error) bool { return target == ErrInvalid }
func (i invalid) Unwrap() error        { return i.error }

func parse(content []byte) (own cleanup.Ownership, err error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	if err := d.Decode(&own); err != nil && !errors.Is(err, io.EOF) {
		return own, byLine(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return own, errors.New("want one document")
	}
	if isEmpty(own) {
		return own, errors.New("it owns nothing")
	}
	return own, own.Validate()
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
