// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

// ParseAside returns the original name of a file that was set aside.
func ParseAside(base, suffix string) (name string, ok bool) {
	a, ok := parseAside(base, suffix)
	return a.name, ok
}
