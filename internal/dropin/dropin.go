// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package dropin finds the files that systemd reads of several directories, as sysctl.d(5)
// and networkd.conf(5) say. It reads files, and needs nothing else. Do not use it for unit
// files, whose drop-ins are in a directory for each unit.
package dropin

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// Read reads a file up to a limit in bytes. What there is nothing to read of is empty.
func Read(ctx context.Context, file string, limit int64) ([]byte, error) {
	if target, err := filepath.EvalSymlinks(file); err == nil && target == os.DevNull {
		return nil, nil
	}
	content, err := input.ReadFile(ctx, file, limit)
	if errors.Is(err, fs.ErrNotExist) { // a link to nothing
		return nil, nil
	}
	return content, err
}

// Files lists the .conf files that count in dirs, of which the first has the highest
// priority, in the order of their names, whichever directory they are in: of two with one
// name, the one in the earlier directory. The file at path, if it is not empty, is assumed
// to exist. A missing directory counts as empty; the error joins those of the others.
func Files(ctx context.Context, dirs []string, path string) ([]string, error) {
	byName := map[string]string{}
	claim := func(file string) {
		if name := filepath.Base(file); byName[name] == "" {
			byName[name] = file
		}
	}
	var errs failure.Set
	for _, dir := range dirs {
		if path != "" && filepath.Dir(path) == filepath.Clean(dir) {
			claim(path)
		}
		names, err := input.ReadNames(ctx, dir, func(name string) bool { return strings.HasSuffix(name, ".conf") && name[0] != '.' })
		if !errors.Is(err, fs.ErrNotExist) {
			errs.Add(err)
		}
		for _, name := range names {
			claim(filepath.Join(dir, name))
		}
	}
	files := slices.Collect(maps.Values(byName))
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return files, errs.Join()
}
