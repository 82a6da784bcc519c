// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package input

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
)

// ReadDropIn reads a file that [DropIns] lists, up to a limit in bytes. What there is nothing
// to read of is empty.
func ReadDropIn(ctx context.Context, file string, limit int64) ([]byte, error) {
	if target, err := filepath.EvalSymlinks(file); err == nil && target == os.DevNull {
		return nil, nil
	}
	content, err := ReadFile(ctx, file, limit)
	if errors.Is(err, fs.ErrNotExist) { // a link to nothing
		return nil, nil
	}
	return content, err
}

// DropIns lists the .conf files that systemd reads of several directories, as sysctl.d(5)
// and networkd.conf(5) say (those of units are elsewhere). The first of dirs has the highest
// priority; the files are in the order of their names, whichever directory they are in: of
// two with one name, the one in the earlier directory. The file at path, if it is not empty,
// is assumed to exist. A missing directory counts as empty; the error joins those of the
// others.
func DropIns(ctx context.Context, dirs []string, path string) ([]string, error) {
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
		names, err := ReadNames(ctx, dir, func(name string) bool { return strings.HasSuffix(name, ".conf") && name[0] != '.' })
		if !errors.Is(err, fs.ErrNotExist) {
			errs.Add(err)
		}
		for _, name := range names {
			claim(filepath.Join(dir, name))
		}
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files, errs.Join()
}
