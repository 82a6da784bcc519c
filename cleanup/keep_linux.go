// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// readKept collects the paths to keep, with no symbolic link among their
// parents. Nothing may be removed where a journal cannot be read.
func (s *session) readKept() error {
	whole, dirs, err := recordedPaths(s.Journal)
	if err != nil {
		return fmt.Errorf("cleanup: what to keep: %w", err)
	}
	s.kept = kept{map[string]bool{}, map[string]bool{}}
	for _, path := range append(whole, s.Keep...) {
		s.kept.whole[resolveParents(path)] = true
	}
	for _, path := range append(dirs, s.KeepDirs...) {
		s.kept.dirs[resolveParents(path)] = true
	}
	return nil
}

// kept are paths that stay, with no symbolic link among their parents.
type kept struct {
	whole map[string]bool // with everything below
	dirs  map[string]bool // directories, but not what is in them
}

// holds reports whether path stays.
func (k kept) holds(path string) bool {
	if k.dirs[path] {
		return true
	}
	for ; !k.whole[path]; path = filepath.Dir(path) {
		if path == filepath.Dir(path) {
			return false
		}
	}
	return true
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

// recordedPaths returns the files and mount points, and the directories, that
// a journal holds.
func recordedPaths(j *journal.Journal) (whole, dirs []string, err error) {
	if j == nil {
		return nil, nil, nil
	}
	whole = []string{j.Dir()}
	entries, err := j.Entries()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch {
		case !filepath.IsAbs(e.Object):
		case strings.HasSuffix(e.Kind, "/dir"):
			dirs = append(dirs, e.Object)
		default:
			whole = append(whole, e.Object)
		}
	}
	return whole, dirs, nil
}
