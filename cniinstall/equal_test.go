// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A single differing byte is found anywhere in a large plugin, and the written copy has every
// byte.
func TestCNI1_OneByteOfALargePlugin(t *testing.T) {
	const size = 5<<20 + 77
	n := newNode(t)
	content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
	n.source("large", string(content))
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	for _, at := range []int64{0, 128<<10 - 1, 128 << 10, 2<<20 - 1, 2 << 20, 4 << 20, size - 1} {
		f, err := os.OpenFile(n.plugin("large"), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		changes, err := i.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"write " + n.plugin("large")}, changes, "byte %d", at)
		require.NoError(t, i.Apply(t.Context()))
		requireContent(t, n.plugin("large"), string(content), 0o755)
	}
	requireConverged(t, i, n.root)
}
