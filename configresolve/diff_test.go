// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

func TestCFG10_Diff(t *testing.T) {
	first := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{
		static("one", values{"same": "1", "value": "1", "source": "1", "gone": "1"})}})
	second := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{
		static("one", values{"same": "1", "value": "2", "source": "1"}), static("two", values{"source": "1", "new": "a\nb"})},
		DenyKeys: []string{"other"}})
	var lines []string
	for _, c := range configresolve.Diff(first, second) {
		lines = append(lines, c.String())
	}
	require.Equal(t, []string{
		`config-sources-overrides = "{\"allowConfigKeys\":[],\"denyConfigKeys\":[\"other\"]}" (was "{\"allowConfigKeys\":[],\"denyConfigKeys\":[]}")`,
		`gone is no longer set (was "1" from static:one)`,
		`new = "a\nb" from static:two`,
		`source = "1" from static:two (was "1" from static:one)`,
		`value = "2" from static:one (was "1" from static:one)`,
	}, lines)
	require.Empty(t, configresolve.Diff(second, second))
	require.Empty(t, configresolve.Diff(nil, nil))
	require.Len(t, configresolve.Diff(nil, first), 6, "four keys and the two that are written beside them")
	require.Len(t, configresolve.Diff(first, nil), 6)
}
