// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"iter"
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
	s.kept = &kept{}
	for _, path := range append(whole, s.Keep...) {
		s.kept.add(resolveParents(path)).whole = true
	}
	for _, path := range append(dirs, s.KeepDirs...) {
		s.kept.add(resolveParents(path)).dir = true
	}
	return nil
}

// kept says what stays at a path that has no symbolic link among its parents,
// and below. It is asked a name at a time, so that a deep tree costs no more for
// each name than a flat one. Nil: nothing stays.
type kept struct {
	whole bool // it stays, with everything below
	dir   bool // the directory stays, but not what is in it
	below map[string]*kept
}

// add makes the place of a path.
func (k *kept) add(path string) *kept {
	for name := range elements(path) {
		if k.below == nil {
			k.below = map[string]*kept{}
		}
		if k.below[name] == nil {
			k.below[name] = &kept{}
		}
		k = k.below[name]
	}
	return k
}

// elements are the names in an absolute, clean path.
func elements(path string) iter.Seq[string] {
	return strings.SplitSeq(strings.Trim(path, "/"), "/")
}

// at is what stays at a name, and below.
func (k *kept) at(name string) *kept {
	if k == nil || k.whole {
		return k
	}
	return k.below[name]
}

// find is what stays at a path, and below.
func (k *kept) find(path string) *kept {
	for name := range elements(path) {
		k = k.at(name)
	}
	return k
}

func (k *kept) stays() bool { return k != nil && (k.whole || k.dir) }

// holds reports whether path stays.
func (k *kept) holds(path string) bool { return k.find(path).stays() }

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
