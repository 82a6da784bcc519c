// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/printable"
)

// unshown is the error from parsing a secret. Its own text would contain the
// secret.
type unshown struct{ error }

func (unshown) Error() string   { return "its value cannot be parsed, and is not shown" }
func (u unshown) Unwrap() error { return u.error }

// parse passes the value of key on. The error names the key and the source of the value; if
// the key has none, it mentions a value that the policy denied, if any.
func (c *Config) parse(key string, parse func(string) error) error {
	value, ok := c.Lookup(key)
	if !ok {
		return code.Errorf(code.ConfigInvalid, "config key %s is not set%s", quote(key), c.deniedNote(key))
	}
	err := parse(value)
	if err != nil && printable.Secret(key) {
		err = unshown{err}
	}
	if err != nil {
		return code.Errorf(code.ConfigInvalid, "config key %s from %s: %w", quote(key), c.entries[key].Source, err)
	}
	return nil
}

func (c *Config) deniedNote(key string) string {
	e, ok := c.entries[key]
	if !ok || len(e.Denied) == 0 {
		return ""
	}
	last := e.Denied[len(e.Denied)-1]
	return fmt.Sprintf(" (%s gives it, but it is %s)", last.Source, last.Rule)
}

// Unknown returns, sorted, a finding for each key that is set, but is neither among those
// that [Decode] reads into v, unless that is nil, nor among known. Its reason names the key
// that it may be a misspelling of.
func (c *Config) Unknown(v any, known ...string) (findings []Finding) {
	fields, _ := fieldsOf(v) // Decode reports errors in v
	for _, f := range fields {
		known = append(known, f.key)
	}
	for key := range c.All() {
		if slices.Contains(known, key) {
			continue
		}
		f := Finding{Problem: problemUnknown, Key: key, Source: c.entries[key].Source, Reason: "is not known"}
		if nearest := Nearest(key, known); nearest != "" {
			f.Reason += " (" + quote(nearest) + " is)"
		}
		findings = append(findings, f)
	}
	return findings
}

// Nearest returns the known key that is the fewest edits away from key, if these
// are at most a third of its length; empty if none is. Among equals, it returns the
// first in order. Flags, and whatever else is typed, can be compared as keys are.
func Nearest(key string, known []string) string {
	best, least := "", len(key)/3+1
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		if d := distance(key, candidate, least); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the single-byte insertions, deletions and replacements, and
// swaps of neighbours, between a and b. It gives up at limit.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
