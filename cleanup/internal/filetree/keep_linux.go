// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"iter"
	"path/filepath"
	"strings"
)

// Keep is the set of paths that are not removed. A walk queries it name by name, so that
// a deep tree costs no more for each name than a flat one. Nil keeps nothing.
type Keep struct {
	all   bool // this path, with everything below it
	dir   bool // this directory, but not its content
	below map[string]*Keep
}

// AddAll keeps a path with everything below it.
func (k *Keep) AddAll(path string) { k.add(path).all = true }

// AddDir keeps a directory, but not its content.
func (k *Keep) AddDir(path string) { k.add(path).dir = true }

func (k *Keep) add(path string) *Keep {
	for name := range elements(ResolveParents(path)) {
		if k.below == nil {
			k.below = map[string]*Keep{}
		}
		if k.below[name] == nil {
			k.below[name] = &Keep{}
		}
		k = k.below[name]
	}
	return k
}

// elements are the names in an absolute, clean path.
func elements(path string) iter.Seq[string] {
	return strings.SplitSeq(strings.Trim(path, "/"), "/")
}

// at returns the kept paths at a name and below it.
func (k *Keep) at(name string) *Keep {
	if k == nil || k.all {
		return k
	}
	return k.below[name]
}

// find returns the kept paths at a path and below it.
func (k *Keep) find(path string) *Keep {
	for name := range elements(path) {
		k = k.at(name)
	}
	return k
}

func (k *Keep) itself() bool { return k != nil && (k.all || k.dir) }

// Keeps reports whether a path is kept that has no symbolic link among its
// parents.
func (k *Keep) Keeps(path string) bool { return k.find(path).itself() }

// ResolveParents returns a path as it is without symbolic links among its
// parents, as far as they exist.
func ResolveParents(path string) string {
	path = filepath.Clean(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
