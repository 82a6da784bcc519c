// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A single differing byte is found anywhere in a large plugin, here or in its source, and the
// written copy has every byte.
func TestCNI1_OneByteOfALargePlugin(t *testing.T) {
	const size = 5<<20 + 77 // read in pieces, the last one not full
	n := newNode(t)
	content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
	n.source("large", string(content))
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	for k, at := range []int64{0, 128<<10 - 1, 128 << 10, size - 1} {
		before, err := os.Stat(n.plugin("large"))
		require.NoError(t, err)
		if k%2 == 0 {
			f, err := os.OpenFile(n.plugin("large"), os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("x"), at)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.NoError(t, os.Chtimes(n.plugin("large"), before.ModTime(), before.ModTime()))
		} else {
			content[at] = 'x'
			n.source("large", string(content))
		}
		requireChanges(t, i, "write "+n.plugin("large"))
		require.NoError(t, i.Apply(t.Context()))
		requireContent(t, n.plugin("large"), string(content), 0o755)
	}
	requireConverged(t, i, n.root)
}
