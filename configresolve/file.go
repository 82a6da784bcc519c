// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/input/onedoc"
)

// File is a YAML or JSON file that contains either a map of keys to scalars or the
// manifest of a ConfigMap, whose data is read but not its binaryData. A scalar that
// is not a string is taken as written (0.0025, true, 1e3), and null is the empty
// value. A duplicate key, a list or map as a value, a second document that is not empty
// and a manifest of another kind are errors.
type File struct {
	Path string
}

var errNoPath = errors.New("no path given")

// Ref identifies the source as file:PATH.
func (f File) Ref() Ref { return Ref{Kind: kindFile, Name: f.Path} }

// Read reads and parses the file. If the file does not exist, the error matches
// [ErrMissing]. A FIFO, a device or anything else that is not a regular file is an
// error too.
func (f File) Read(ctx context.Context) ([]Layer, error) {
	content, err := f.Content(ctx)
	if err != nil {
		return nil, err
	}
	values, empty, err := parse(content)
	if err != nil {
		return nil, code.Errorf(code.ConfigInvalid, "parse %s: %w", f.Path, err)
	}
	return []Layer{{Ref: f.Ref(), Values: values, Empty: empty}}, nil
}

// Decode decodes a YAML file of another form than a source's, such as a program's own
// flags, by the same rules: of several documents all but one are empty, and a field that
// the struct into does not have is an error. If there is no document, into stays as it is.
func (f File) Decode(ctx context.Context, into any) error {
	content, err := f.Content(ctx)
	if err != nil {
		return err
	}
	if err := onedoc.Decode(content, into); err != nil {
		return code.Errorf(code.ConfigInvalid, "parse %s: %w", f.Path, err)
	}
	return nil
}

// Content reads the file without parsing it, for a program that has a file of
// another format beside its sources. Its size may be up to 8 MiB, and the errors
// are those of [File.Read].
func (f File) Content(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.Path == "" {
		return nil, errNoPath
	}
	content, err := input.ReadFile(ctx, f.Path, input.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file %s: %w", f.Path, ErrMissing)
	}
	return content, err
}
