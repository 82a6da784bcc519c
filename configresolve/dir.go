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

// Dir is the source that reads a ConfigMap mounted as a directory, or any directory with one file for
// each key: the file's name is the key, its content the value. Symbolic links are
// followed, names that start with ".." (the kubelet's own) and subdirectories are
// skipped, and anything that is neither a file nor a directory is an error. All
// values belong to the same version of the ConfigMap, even if the kubelet updates
// it while they are read. If the directory does not exist, the error matches [ErrMissing].
func Dir(path string) Source {
	d := dir{path}
	return Source{Ref: d.ref(), Read: d.read, state: d.state}
}

type dir struct{ path string }

func (d dir) ref() Ref { return Ref{Kind: kindDir, Name: d.path} }

// dirAttempts bounds how often an update by the kubelet may interfere: it swaps
// versions once in several seconds at most.
const dirAttempts = 5

// read reads every key's file.
func (d dir) read(ctx context.Context) ([]Layer, error) {
	if d.path == "" {
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
			return []Layer{{Ref: d.ref(), Values: values, Empty: "it has no files"}}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("read directory %s: it changes faster than it can be read", d.path), err)
}

// version names the data directory that the kubelet has put in place.
func (d dir) version() string {
	target, err := os.Readlink(filepath.Join(d.path, "..data"))
	if err != nil {
		return ""
	}
	return target
}

func (d dir) readOnce(ctx context.Context) (map[string]string, error) {
	names, err := input.ReadNames(ctx, d.path, func(name string) bool { return !strings.HasPrefix(name, "..") })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("directory %s: %w", d.path, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	values := make(map[string]string, len(names))
	room := int64(input.MaxValues)
	for _, name := range names {
		value, ok, err := readKeyFile(ctx, filepath.Join(d.path, name), room)
		if errors.Is(err, input.ErrTooLarge) {
			err = fmt.Errorf("%w (its values together, up to %s)", input.TooLarge(d.path, input.MaxValues), name)
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
