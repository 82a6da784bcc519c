// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

// Diff is what Watch reports.
var Diff = diff

// ParseFile is File's parser.
func ParseFile(content []byte) (map[string]string, error) {
	values, _, err := parse(content)
	return values, err
}
