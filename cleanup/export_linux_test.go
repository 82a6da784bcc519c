// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

// CompileOwnership validates an ownership, and applies it to names.
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

// ParseAside returns the original name of a file that was set aside.
func ParseAside(base, suffix string) (name string, ok bool) {
	a, ok := parseAside(base, suffix)
	return a.name, ok
}
