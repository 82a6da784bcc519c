// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Problem classifies a [Finding].
type Problem string

// What can be wrong without stopping a resolution that is not strict.
const (
	Invalid  Problem = "invalid"  // not a ConfigMap key: left out
	Reserved Problem = "reserved" // one of the keys that the writer adds: left out
	Denied   Problem = "denied"   // dropped by the override policy
	Doubled  Problem = "doubled"  // set by two objects of one source: the later wins
	Missing  Problem = "missing"  // an optional source does not exist
)

// Finding is one thing that a resolution met and that an administrator should
// know.
type Finding struct {
	Problem Problem `json:"problem"`
	Key     string  `json:"key,omitempty"` // as the source gave it: may hold anything
	Source  Ref     `json:"source"`
	Part    string  `json:"part,omitempty"`
	Reason  string  `json:"reason"`
}

// String formats f as one line, safe to print whatever the key holds.
func (f Finding) String() string {
	from := origin(f.Source, f.Part)
	if f.Problem == Missing {
		return "missing " + from + ": " + printable.Line(f.Reason)
	}
	return string(f.Problem) + " key " + quote(f.Key) + " from " + from + ": " + printable.Line(f.Reason)
}

// Findings returns what the resolution reports, in the order of the sources and
// by key within a source's object.
func (c *Config) Findings() []Finding { return slices.Clone(c.findings) }
