// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package ownershipfile reads an agent's ownership from a YAML file, in place of a preset
// such as [cleanup.Cilium]. It is separate from package cleanup, so that programs that
// describe an agent in Go do not link YAML.
//
// The fields are those of [cleanup.Ownership] by their JSON names; ownership.schema.json,
// beside this package, describes them for editors. A file with other fields is an error,
// as is one that owns nothing, or property of others: see [cleanup.Ownership.Validate].
//
// It needs no capability, and works on every system. [ReadFile] reads in the calling
// thread's mount namespace.
package ownershipfile

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/input/onedoc"
)

// ErrInvalid is matched by the error for content that is not a valid ownership.
var ErrInvalid = errors.New("invalid ownership file")

// ReadFile parses the regular file at path, of at most 1 MiB. It opens the file without
// blocking, so that a FIFO does not hang the caller, and follows symbolic links, such as
// that of a key in a mounted ConfigMap. If the file was read but is not valid, the error
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

// Parse reads the one document in content and validates it; empty documents beside it are skipped. The caller must bound the
// size of content. The error names the lines of all fields that are unknown or of the
// wrong type or, if there are none, the first invalid rule. It matches [ErrInvalid].
func Parse(content []byte) (cleanup.Ownership, error) {
	own, err := parse(content)
	if err != nil {
		return cleanup.Ownership{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return own, nil
}

func parse(content []byte) (own cleanup.Ownership, err error) {
	if err := onedoc.Decode(content, &own); err != nil {
		return own, err
	}
	if isEmpty(own) {
		return own, errors.New("it owns nothing")
	}
	return own, own.Validate()
}

// isEmpty reports whether nothing but the agent's name is set, and no list has an element.
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
