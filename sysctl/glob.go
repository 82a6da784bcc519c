// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// glob lists the paths that exist in f and match pattern as glob(3) with
// GLOB_BRACE does: a wildcard matches neither a slash nor a leading dot.
func glob(f Files, pattern string) ([]string, error) {
	patterns, err := braces(pattern)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range patterns {
		matches, err := globElements(f, "", strings.Split(p, "/"))
		if err != nil {
			return nil, err
		}
		found = append(found, matches...)
	}
	return found, nil
}

func globElements(f Files, dir string, elements []string) ([]string, error) {
	names, err := matching(f, dir, elements[0])
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		at := path.Join(dir, name)
		switch {
		case len(elements) > 1:
			below, err := globElements(f, at, elements[1:])
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		case isWild(elements[0]) || exists(f, at):
			found = append(found, at)
		}
	}
	return found, nil
}

// couldMatch returns an error that matches [fs.ErrNotExist] if pattern, which matches
// nothing, would not either whatever names its wildcards stand for: its fixed directory is
// missing, or nothing beside what it is about has the rest of the key.
func couldMatch(f Files, pattern string) error {
	patterns, err := braces(pattern)
	if err != nil {
		return err
	}
	var wide []string
	for _, p := range patterns {
		elements := widened(strings.Split(p, "/"))
		if anyMatch(f, "", elements) {
			return nil
		}
		wide = append(wide, string(keyOf(strings.Join(elements, "/"))))
	}
	return fmt.Errorf("no key can match, since there is no %s: %w", strings.Join(slices.Compact(wide), ", "), fs.ErrNotExist)
}

// widened returns a pattern's elements with * in place of those with wildcards; but the
// last one is the rest of the key, if it is not the only one.
func widened(elements []string) []string {
	elements = slices.Clone(elements)
	wild := false
	for i, e := range elements {
		if isWild(e) && (!wild || i < len(elements)-1) {
			wild, elements[i] = true, "*"
		}
	}
	return elements
}

// anyMatch reports whether a path matches. What cannot be looked at may.
func anyMatch(f Files, dir string, elements []string) bool {
	names, err := matching(f, dir, elements[0])
	if err != nil {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		at := path.Join(dir, name)
		if len(elements) > 1 {
			return anyMatch(f, at, elements[1:])
		}
		return isWild(elements[0]) || exists(f, at)
	})
}

// matching lists the names in dir that match an element with wildcards. If dir does
// not exist or is not a directory, nothing matches. Without wildcards it is the
// element, whether it exists or not.
func matching(f Files, dir, element string) ([]string, error) {
	if !isWild(element) {
		return []string{element}, nil
	}
	if hasClass(element) {
		return nil, fmt.Errorf("%w: %q has a character class, which is not supported", errKey, element)
	}
	names, err := f.ReadDir(path.Join(".", dir))
	if isMissing(err) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return !matches(element, name) }), err
}

// matches reports whether a name matches an element with wildcards, a leading dot only
// by a dot.
func matches(element, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(element, `\\`), ".") {
		return false
	}
	ok, _ := path.Match(negated(element), name)
	return ok
}

// negated spells [!a] as package path does.
func negated(element string) string { return strings.ReplaceAll(element, "[!", "[^") }

// isWild reports whether an element of a pattern is more than a name. One that is not
// complete, such as "[a", stands for itself.
func isWild(element string) bool {
	_, err := path.Match(negated(element), "")
	return err == nil && strings.ContainsAny(element, `*?[\`)
}

// hasClass reports whether s has a character class, such as [:alpha:].
func hasClass(s string) bool { return strings.Contains(s, "[:") && strings.Contains(s, ":]") }

func exists(f Files, at string) bool {
	_, err := f.ReadFile(at)
	return !isMissing(err)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) }

// Bounds for a pattern: no path below /proc/sys is that long, and each pair of
// braces may double the number of patterns.
const (
	maxPattern  = 1024 // bytes
	maxPatterns = 1024 // of which braces make one
)

// braces spells out {a,b}, leftmost first; an unmatched brace stands for itself.
func braces(s string) ([]string, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("%w: a pattern of %d bytes, and none is needed of more than %d", errKey, len(s), maxPattern)
	}
	all := spell(nil, s)
	if len(all) > maxPatterns {
		return nil, fmt.Errorf("%w: %.100q has braces for more than %d patterns", errKey, s, maxPatterns)
	}
	return all, nil
}

// spell adds what the braces in s spell out to all, until that is too many.
func spell(all []string, s string) []string {
	if len(all) > maxPatterns {
		return all
	}
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return append(all, s)
	}
	depth, from, options := 0, open+1, []string(nil)
	for i := open; i < len(s); i++ {
		switch {
		case s[i] == '{':
			depth++
		case s[i] == ',' && depth == 1:
			options, from = append(options, s[from:i]), i+1
		case s[i] == '}':
			depth--
		}
		if depth == 0 {
			for _, option := range append(options, s[from:i]) {
				all = spell(all, s[:open]+option+s[i+1:])
			}
			return all
		}
	}
	return append(all, s)
}
