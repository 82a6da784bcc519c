// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Problem classifies a [Finding].
type Problem string

// The problems that do not stop a resolution, unless it is strict.
const (
	Invalid  Problem = "invalid"  // not a ConfigMap key: left out
	Reserved Problem = "reserved" // one of the keys that the writer adds: left out
	Denied   Problem = "denied"   // dropped by the override policy
	Doubled  Problem = "doubled"  // set by two objects of one source: the later one wins
	Missing  Problem = "missing"  // an optional source does not exist
	Empty    Problem = "empty"    // an object that exists sets no keys
)

// Finding is a remark about a resolution for an administrator.
type Finding struct {
	Problem Problem `json:"problem"`
	Key     string  `json:"key,omitempty"` // as the source gave it, perhaps invalid
	Source  Ref     `json:"source"`
	Part    string  `json:"part,omitempty"`
	Reason  string  `json:"reason"`
}

// String formats f as one line, which is safe to print whatever the key contains.
func (f Finding) String() string {
	from := origin(f.Source, f.Part)
	if f.Problem == Missing || f.Problem == Empty {
		return string(f.Problem) + " " + from + ": " + printable.Line(f.Reason)
	}
	return string(f.Problem) + " key " + quote(f.Key) + " from " + from + ": " + printable.Line(f.Reason)
}

// Findings returns the findings of the resolution, in the order of the sources and,
// within one object of a source, by key.
func (c *Config) Findings() []Finding { return slices.Clone(c.findings) }
