// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-dev/slipway/internal/failure"
)

// assignment is a setting and the line that it comes from.
type assignment struct {
	Setting
	File string // empty: the caller's own list
	Line int
}

// target is the wanted value of one key that exists or is named explicitly.
type target struct {
	assignment
	path   string
	byGlob bool
}

func assignments(settings []Setting) []assignment {
	as := make([]assignment, 0, len(settings))
	for _, s := range settings {
		as = append(as, assignment{Setting: s})
	}
	return as
}

// override sorts assignments into the order in which systemd applies them: of two
// for the same key the later counts, in its own position; but if it repeats the
// value, the position of the earlier one. Invalid assignments are left out, and
// their errors joined.
func override(as []assignment) ([]assignment, error) {
	all, at := make([]assignment, 0, len(as)), map[Key]int{} // at: where the key stands in all
	var errs failure.Set
	for _, a := range as {
		key, err := ParseKey(string(a.Key))
		if err == nil && strings.ContainsAny(a.Value, "\n\x00") {
			err = fmt.Errorf("%s: value %q holds a line break or NUL", key, a.Value)
		}
		if err != nil {
			errs.Add(err)
			continue
		}
		a.Key = key
		if i, seen := at[key]; seen {
			if old := &all[i]; old.Exclude == a.Exclude && old.Value == a.Value {
				old.IgnoreFailure = old.IgnoreFailure || a.IgnoreFailure
				old.IfExists = old.IfExists || a.IfExists
				continue
			}
		}
		at[key] = len(all)
		all = append(all, a)
	}
	order := all[:0]
	for i, a := range all {
		if at[a.Key] == i {
			order = append(order, a)
		}
	}
	return order, errs.Join()
}

// maxTargets bounds what all globs together match: ten of them 5,000 links.
const maxTargets = 100_000

// expand says which key gets which value: no glob applies to a key that is
// explicitly assigned or excluded, and of two globs the later counts.
func expand(f Files, as []assignment) ([]target, error) {
	order, err := override(as)
	var errs failure.Set
	errs.Add(err)
	explicit := map[Key]bool{}
	for _, a := range order {
		explicit[a.Key] = true
	}
	var targets []target
	for _, a := range order {
		found, err := a.targets(f, explicit)
		if err != nil && !a.IgnoreFailure {
			errs.Add(a.unexpanded(err))
		}
		if len(targets)+len(found) > maxTargets {
			errs.Add(fmt.Errorf("expand %s: there are more than %d values to set up to here, and the rest is left out", a.Key, maxTargets))
			break
		}
		targets = append(targets, found...)
	}
	return lastOfEach(targets), errs.Join()
}

// isPattern reports whether a stands for the keys that match it.
func (a assignment) isPattern() bool {
	path, err := a.Key.path()
	return err == nil && isGlob(path)
}

func (a assignment) targets(f Files, explicit map[Key]bool) ([]target, error) {
	path, err := a.Key.path()
	switch {
	case err != nil:
		return nil, err
	case a.Exclude:
		return nil, nil
	case !isGlob(path):
		return []target{{assignment: a, path: path}}, nil
	}
	paths, err := glob(f, path)
	if err == nil && len(paths) == 0 && !a.IfExists {
		err = couldMatch(f, path)
	}
	var found []target
	for _, p := range paths {
		one := a
		if one.Key = keyOf(p); !explicit[one.Key] {
			found = append(found, target{assignment: one, path: p, byGlob: true})
		}
	}
	return found, err
}

// unexpanded is why a pattern has no keys. One that could have none is as a key that is
// missing.
func (a assignment) unexpanded(err error) error {
	err = hint(a.Key, err)
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{opSet, a.Key, a.Value, err}
	}
	return fmt.Errorf("expand %s: %w", a.Key, err)
}

func lastOfEach(targets []target) []target {
	last := map[string]int{}
	for i, t := range targets {
		last[t.path] = i
	}
	kept := targets[:0]
	for i, t := range targets {
		if last[t.path] == i {
			kept = append(kept, t)
		}
	}
	return kept
}
