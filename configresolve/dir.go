// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a ConfigMap mounted as a directory, or any directory with one file a
// key: the file's name is the key, its content the value. Symbolic links are
// followed, names that start with ".." (the kubelet's own) and subdirectories
// are passed over, and what is neither a file nor a directory is an error. The
// values are of one version of the ConfigMap, also when the kubelet is updating
// it meanwhile.
type Dir struct {
	Path string
}

// dirAttempts bounds how often an update by the kubelet may get in the way: it
// swaps versions at most once in several seconds.
const dirAttempts = 5

// Ref names the source dir:PATH.
func (d Dir) Ref() Ref { return Ref{Kind: KindDir, Name: d.Path} }

// Read reads every key file. A directory that does not exist matches
// [ErrMissing].
func (d Dir) Read(ctx context.Context) ([]Layer, error) {
	var err error
	for range dirAttempts {
		var values map[string]string
		before := d.version()
		values, err = d.readOnce(ctx)
		if d.version() == before {
			return d.layer(values, err)
		}
	}
	return nil, errors.Join(fmt.Errorf("read directory %s: it changes faster than it can be read", d.Path), err)
}

func (d Dir) layer(values map[string]string, err error) ([]Layer, error) {
	if err != nil {
		return nil, err
	}
	return []Layer{{Ref: d.Ref(), Values: values}}, nil
}

// version names the data directory that the kubelet has put in place.
func (d Dir) version() string {
	target, err := os.Readlink(filepath.Join(d.Path, dataLink))
	if err != nil {
		return ""
	}
	return target
}

func (d Dir) readOnce(ctx context.Context) (map[string]string, error) {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("directory %s: %w", d.Path, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(entries))
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		value, ok, err := readKeyFile(filepath.Join(d.Path, entry.Name()))
		if err != nil {
			return nil, err
		}
		if ok {
			values[entry.Name()] = value
		}
	}
	return values, nil
}

// readKeyFile reads a file, and reports false for a directory.
func readKeyFile(path string) (value string, ok bool, err error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", false, err
	}
	f, err := openRegular(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return string(content), err == nil, err
}
