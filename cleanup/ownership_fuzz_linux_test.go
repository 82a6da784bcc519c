// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// The name that a file regains is part of its present name.
func FuzzAside(f *testing.F) {
	for _, seed := range []string{"a.conf.cilium_bak", "a.conf.cilium_bak.1", ".cilium_bak", "x.cilium_bak.01", "x.cilium_bak.cilium_bak.3", "a.99999999999999999999"} {
		f.Add(seed, ".cilium_bak")
	}
	f.Fuzz(func(t *testing.T, base, suffix string) {
		if name, ok := cleanup.ParseAside(base, suffix); ok {
			require.NotEmpty(t, name)
			require.True(t, strings.HasPrefix(base, name+suffix), "%q of %q", name, base)
		}
	})
}
