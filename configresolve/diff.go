// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"
	"maps"
	"slices"
)

// Change is one key that differs between two configurations: in its value, or in
// the value's source. One of Old and New may be unset.
type Change struct {
	Key string `json:"key"`
	Old Entry  `json:"old"`
	New Entry  `json:"new"`

	revealed bool
}

// String formats c as one line: the new value and its source, and the old ones.
// Values that look like secrets are masked as by [Explanation.String].
func (c Change) String() string {
	switch {
	case !c.New.Set:
		return fmt.Sprintf("%s is no longer set (was %s)", c.Key, c.given(c.Old))
	case !c.Old.Set:
		return c.Key + " = " + c.given(c.New)
	}
	return fmt.Sprintf("%s = %s (was %s)", c.Key, c.given(c.New), c.given(c.Old))
}

func (c Change) given(e Entry) string {
	value := shownValue(c.Key, e.Value, c.revealed)
	if e.Source == (Ref{}) {
		return value // one of the keys that the writer adds
	}
	return value + " from " + origin(e.Source, e.Part)
}

// diff lists the keys in which two configurations differ, sorted, including
// config-sources and config-sources-overrides. A nil Config has no keys.
func diff(old, now *Config) []Change {
	before, after := old.written(), now.written()
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := before[key], after[key]
		if was.Set != is.Set || was.Given != is.Given {
			changes = append(changes, Change{Key: key, Old: was, New: is, revealed: now != nil && now.revealed})
		}
	}
	return changes
}

// written returns an entry for each key of Data.
func (c *Config) written() map[string]Entry {
	entries := map[string]Entry{}
	if c == nil {
		return entries
	}
	for key, value := range c.Data() {
		if reserved(key) {
			entries[key] = Entry{Key: key, Set: true, Given: Given{Value: value}}
		} else {
			entries[key] = c.explain(key)
		}
	}
	return entries
}
