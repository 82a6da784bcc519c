// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "errors"

// What the fuzz targets and the tests of single parts call.
var (
	ParseLink   = func(b []byte) error { _, err := parseLink(b); return err }
	ParseFilter = func(b []byte) error { _, err := parseFilter(b); return err }
	ParseXDP    = func(b []byte) error { _, err := parseXDP(b); return err }
	ParseRoute  = func(b []byte) error {
		r, _, err := parseRoute(b)
		if err == nil {
			r.deleteRequest()
			r.foreignHops(map[int]bool{1: true})
		}
		return err
	}
	ParseRule   = func(b []byte) error { _, err := parseRule(b); return err }
	ParsePolicy = func(b []byte) error { _, err := parsePolicy(b); return err }
	ParseState  = func(b []byte) error { _, err := parseState(b); return err }
	ReadAnswer  = func(b []byte) error {
		a := answer{seq: 0, reply: 16}
		return errors.Join(a.read(b), a.err)
	}
	RetryDump = retryDump[[][]byte]
)

// CompileOwnership checks an ownership, and asks it about names.
func CompileOwnership(o Ownership, names ...string) error {
	own, err := o.compile()
	if err != nil {
		return err
	}
	for _, name := range names {
		own.ownsLink(name, "veth", []string{name})
		own.ownsNetNS(name)
		own.ownsFile(name)
	}
	return nil
}

// ParseAside reads a name by which something was set aside, and says which it
// had before.
func ParseAside(base, suffix string) (name string, ok bool) {
	a, ok := parseAside(base, suffix)
	return a.name, ok
}

// DumpTries is how often a dump is tried.
const DumpTries = dumpTries
