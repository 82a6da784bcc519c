// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// Dir is a ConfigMap mounted as a directory, or any directory with one file for
// each key: the file's name is the key, its content the value. Symbolic links are
// followed, names that start with ".." (the kubelet's own) and subdirectories are
// skipped, and anything that is neither a file nor a directory is an error. All
// values belong to the same version of the ConfigMap, even if the kubelet updates
// it while they are read.
type Dir struct {
	Path string
}

// dirAttempts bounds how often an update by the kubelet may interfere: it swaps
// versions once in several seconds at most.
const dirAttempts = 5

// Ref identifies the source as dir:PATH.
func (d Dir) Ref() Ref { return Ref{Kind: kindDir, Name: d.Path} }

// Read reads every key's file. If the directory does not exist, the error matches
// [ErrMissing].
func (d Dir) Read(ctx context.Context) ([]Layer, error) {
	if d.Path == "" {
		return nil, errNoPath
	}
	var err error
	for range dirAttempts {
		var values map[string]string
		before := d.version()
		values, err = d.readOnce(ctx)
		if d.version() == before || ctx.Err() != nil {
			if err != nil {
				return nil, err
			}
			return []Layer{{Ref: d.Ref(), Values: values, Empty: "it has no files"}}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("read directory %s: it changes faster than it can be read", d.Path), err)
}

// version names the data directory that the kubelet has put in place.
func (d Dir) version() string {
	target, err := os.Readlink(filepath.Join(d.Path, "..data"))
	if err != nil {
		return ""
	}
	return target
}

func (d Dir) readOnce(ctx context.Context) (map[string]string, error) {
	names, err := input.ReadNames(ctx, d.Path, func(name string) bool { return !strings.HasPrefix(name, "..") })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("directory %s: %w", d.Path, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	values := make(map[string]string, len(names))
	room := int64(input.MaxValues)
	for _, name := range names {
		value, ok, err := readKeyFile(ctx, filepath.Join(d.Path, name), room)
		if errors.Is(err, input.ErrTooLarge) {
			err = fmt.Errorf("%w (its values together, up to %s)", input.TooLarge(d.Path, input.MaxValues), name)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			values[name] = value
			room -= int64(len(value))
		}
	}
	return values, nil
}

// readKeyFile reads a file of at most limit bytes, and reports false for a
// directory.
func readKeyFile(ctx context.Context, path string, limit int64) (value string, ok bool, err error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", false, err
	}
	content, err := input.ReadFile(ctx, path, limit)
	return string(content), err == nil, err
}
