// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl

// Called by the fuzz target.
var (
	ParseLink   = func(b []byte) error { _, err := parseLink(b); return err }
	ParseFilter = func(b []byte) error { _, err := parseFilter(b); return err }
	ParseQdisc  = func(b []byte) error { _, err := parseQdisc(b); return err }
	ParseRoute  = func(b []byte) error {
		r, err := parseRoute(b)
		if err == nil {
			r.DeleteRequest()
			r.Request(nil)
		}
		return err
	}
	ParseRule   = func(b []byte) error { _, err := parseRule(b); return err }
	ParsePolicy = func(b []byte) error { _, err := parsePolicy(b); return err }
	ParseState  = func(b []byte) error { _, err := parseState(b); return err }
)
