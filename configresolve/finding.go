// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import "github.com/slipway-dev/slipway/internal/printable"

// The problems that do not stop a resolution, unless it is strict, and unknown, which
// [Config.Unknown] finds.
const (
	problemInvalid  = "invalid"  // not a ConfigMap key: left out
	problemReserved = "reserved" // one of the keys that the writer adds: left out
	problemDenied   = "denied"   // dropped by the override policy
	problemDoubled  = "doubled"  // set by two objects of one source: the later one wins
	problemMissing  = "missing"  // an optional source does not exist
	problemEmpty    = "empty"    // an object that exists sets no keys
	problemUnknown  = "unknown"
)

// Finding is a remark about a resolution for an administrator.
type Finding struct {
	Problem string `json:"problem"`       // invalid, reserved, denied, doubled, missing, empty or unknown
	Key     string `json:"key,omitempty"` // as the source gave it, perhaps invalid
	Source  Ref    `json:"source"`
	Part    string `json:"part,omitempty"`
	Reason  string `json:"reason"`
}

// String formats f as one line, which is safe to print whatever the key contains.
func (f Finding) String() string {
	from := origin(f.Source, f.Part)
	if f.Problem == problemMissing || f.Problem == problemEmpty {
		return f.Problem + " " + from + ": " + printable.Line(f.Reason)
	}
	return f.Problem + " key " + quote(f.Key) + " from " + from + ": " + printable.Line(f.Reason)
}
