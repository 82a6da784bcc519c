// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

const bigSize = 70 << 20

// bigPlugin is an install of one plugin of 70 MB, with a record in the folder of
// that name if there is one, and its two paths.
func bigPlugin(b *testing.B, recorded string) (i cniinstall.Install, src, dst string) {
	dir := b.TempDir()
	src, dst = filepath.Join(dir, "src", "big"), filepath.Join(dir, "bin", "big")
	require.NoError(b, os.MkdirAll(filepath.Dir(src), 0o755))
	content := make([]byte, bigSize)
	rand.NewChaCha8([32]byte{}).Read(content)
	require.NoError(b, os.WriteFile(src, content, 0o644))
	root, err := os.OpenRoot(filepath.Dir(src))
	require.NoError(b, err)
	b.Cleanup(func() { root.Close() })
	i = cniinstall.Install{Plugins: root.FS(), BinDir: filepath.Dir(dst)}
	if recorded != "" {
		i.StateDir = filepath.Join(dir, recorded)
	}
	return i, src, dst
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// elapsed is the least of a few measurements.
func elapsed(b *testing.B, runs int, f func()) time.Duration {
	best := time.Duration(1 << 62)
	for range runs {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// The plugin is there and equal: nothing is written. Compared with reading it
// once, as cat does and as is fastest, and with hashing it as sha256sum does.
// Without a record it is compared with its source, with one the source is read.
func BenchmarkCNI1_Equal70MB(b *testing.B) {
	for _, recorded := range []string{"", "state"} {
		b.Run("record="+recorded, func(b *testing.B) {
			i, _, dst := bigPlugin(b, recorded)
			require.NoError(b, i.Apply(b.Context()))
			before, err := os.Stat(dst)
			require.NoError(b, err)
			b.SetBytes(bigSize)
			var apply, cat, read, sum []time.Duration
			for b.Loop() {
				apply = append(apply, elapsed(b, 1, func() { require.NoError(b, i.Apply(b.Context())) }))
				cat = append(cat, elapsed(b, 1, func() { require.NoError(b, exec.Command("cat", dst).Run()) })) // to /dev/null
				read = append(read, elapsed(b, 1, func() { readFile(b, io.Discard, dst) }))
				if len(sum) < 5 {
					sum = append(sum, elapsed(b, 1, func() { readFile(b, sha256.New(), dst) }))
				}
			}
			after, err := os.Stat(dst)
			require.NoError(b, err)
			require.Equal(b, before.ModTime(), after.ModTime(), "nothing is written")
			for name, other := range map[string][]time.Duration{"x-cat": cat, "x-fastest-read": read, "x-sha256": sum} {
				b.ReportMetric(float64(median(apply))/float64(median(other)), name)
			}
		})
	}
}

func readFile(b *testing.B, w io.Writer, path string) {
	f, err := os.Open(path)
	require.NoError(b, err)
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 128<<10))
	require.NoError(b, err)
}

// A new plugin, with and without a record, compared with cp and fsync, in turn.
func BenchmarkCNI1_New70MB(b *testing.B) {
	for _, recorded := range []string{"", "state"} {
		b.Run("record="+recorded, func(b *testing.B) {
			i, src, dst := bigPlugin(b, recorded)
			b.SetBytes(bigSize)
			require.NoError(b, i.Apply(b.Context()))
			var cp, apply []time.Duration
			for b.Loop() {
				require.NoError(b, os.Remove(dst))
				cp = append(cp, elapsed(b, 1, func() { copyAndSync(b, src, dst+".cp") }))
				require.NoError(b, os.Remove(dst+".cp"))
				apply = append(apply, elapsed(b, 1, func() { require.NoError(b, i.Apply(b.Context())) }))
			}
			b.ReportMetric(float64(median(cp))/float64(median(apply)), "speed-of-cp+fsync")
			b.ReportMetric(float64(slices.Min(cp))/float64(slices.Min(apply)), "speed-of-cp+fsync-at-best")
		})
	}
}

func copyAndSync(b *testing.B, src, dst string) {
	out, err := exec.Command("cp", src, dst).CombinedOutput()
	require.NoError(b, err, string(bytes.TrimSpace(out)))
	f, err := os.Open(dst)
	require.NoError(b, err)
	defer f.Close()
	require.NoError(b, f.Sync())
}
