// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/record"
)

// readKept collects the paths to keep, with no symbolic link among their
// parents. Nothing may be removed where a record cannot be read.
func (s *session) readKept() error {
	recorded, err := recordedPaths(s.StateDir)
	if err != nil {
		return fmt.Errorf("cleanup: what to keep: %w", err)
	}
	s.kept = map[string]bool{}
	for _, path := range append(recorded, s.Keep...) {
		s.kept[resolveParents(path)] = true
	}
	return nil
}

// resolveParents returns a path as it is without symbolic links among its
// parents, as far as they exist.
func resolveParents(path string) string {
	path = filepath.Clean(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// recordedPaths returns the files, directories and mount points that the
// records in a state directory hold.
func recordedPaths(stateDir string) (paths []string, err error) {
	if stateDir == "" {
		return nil, nil
	}
	const suffix = ".json"
	names, err := filepath.Glob(filepath.Join(stateDir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		book, err := record.Open(stateDir, strings.TrimSuffix(filepath.Base(name), suffix))
		if err != nil {
			return nil, err
		}
		for _, entry := range book.Entries() {
			if path := strings.TrimPrefix(entry.Object, fsmount.Object("")); filepath.IsAbs(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}
