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

// File is the source that reads a YAML or JSON file, which contains either a map of keys
// to scalars or the manifest of a ConfigMap, whose data is read but not its binaryData. A
// scalar that is not a string is taken as written (0.0025, true, 1e3), and null is the
// empty value. A duplicate key, a list or map as a value, a second document that is not
// empty and a manifest of another kind are errors, and so are a FIFO, a device, and a
// file over 8 MiB. If the file does not exist, the error matches [ErrMissing].
func File(path string) Source {
	ref := Ref{Kind: kindFile, Name: path}
	return Source{
		Ref:   ref,
		state: func(context.Context) string { return stat(path) },
		Read: func(ctx context.Context) ([]Layer, error) {
			content, err := readFile(ctx, path)
			if err != nil {
				return nil, err
			}
			values, empty, err := parse(content)
			if err != nil {
				return nil, code.Errorf(code.ConfigInvalid, "parse %s: %w", path, err)
			}
			return []Layer{{Ref: ref, Values: values, Empty: empty}}, nil
		},
	}
}

var errNoPath = errors.New("no path given")

// DecodeFile decodes a YAML file of another form than a source's, such as a program's own
// flags, by the same rules: of several documents all but one are empty, and a field that
// the struct into does not have is an error. If there is no document, into stays as it is.
func DecodeFile(ctx context.Context, path string, into any) error {
	content, err := readFile(ctx, path)
	if err != nil {
		return err
	}
	if err := onedoc.Decode(content, into); err != nil {
		return code.Errorf(code.ConfigInvalid, "parse %s: %w", path, err)
	}
	return nil
}

func readFile(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, errNoPath
	}
	content, err := input.ReadFile(ctx, path, input.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file %s: %w", path, ErrMissing)
	}
	return content, err
}
