// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The node has just booted: neither the plugin nor its source is in memory.
func BenchmarkCNI1_Equal70MBFromDisk(b *testing.B) {
	for _, recorded := range []string{"", "state"} {
		b.Run("record="+recorded, func(b *testing.B) {
			i, src, dst := bigPlugin(b, recorded)
			require.NoError(b, i.Apply(b.Context()))
			b.SetBytes(bigSize)
			var apply, read []time.Duration
			for b.Loop() {
				forget(b, src, dst)
				apply = append(apply, elapsed(b, 1, func() { require.NoError(b, i.Apply(b.Context())) }))
				forget(b, src, dst)
				read = append(read, elapsed(b, 1, func() { readFile(b, io.Discard, dst) }))
			}
			b.ReportMetric(float64(median(apply))/float64(median(read)), "x-read")
		})
	}
}

// forget makes the kernel keep nothing of the files in memory.
func forget(b *testing.B, paths ...string) {
	for _, path := range paths {
		f, err := os.Open(path)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
		require.NoError(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		require.NoError(b, f.Close())
	}
}
