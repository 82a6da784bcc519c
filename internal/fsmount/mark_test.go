// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

func TestPLAN6_ASourceSaysWhoMadeTheMount(t *testing.T) {
	for _, m := range []journal.Mark{{}, {Journal: "7a"}, {Agent: "acme", Journal: "7a"}, {Agent: "a-b.c_d-e", Journal: "7a"}} {
		source := newSource(m)
		require.NotEqual(t, source, newSource(m), "each mount has its own")
		got, ours := markOf(source)
		require.True(t, ours, source)
		require.Equal(t, m, got, source)
	}
	for source, ours := range map[string]bool{"slipway-0123456789abcdef": true, "slipway": false, "bpf": false, "none": false} {
		m, got := markOf(source)
		require.Equal(t, ours, got, source)
		require.Zero(t, m, source)
	}
}
