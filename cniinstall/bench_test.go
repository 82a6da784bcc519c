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
	"github.com/slipway-dev/slipway/internal/testledger"
)

const bigSize = 70 << 20

// bigPlugin is an install of one 70 MB plugin, with a record in state unless that is empty, and
// the paths of its source and destination.
func bigPlugin(b *testing.B, state string) (i recorded, src, dst string) {
	dir := b.TempDir()
	src, dst = filepath.Join(dir, "src", "big"), filepath.Join(dir, "bin", "big")
	require.NoError(b, os.MkdirAll(filepath.Dir(src), 0o755))
	content := make([]byte, bigSize)
	rand.NewChaCha8([32]byte{}).Read(content)
	require.NoError(b, os.WriteFile(src, content, 0o644))
	root, err := os.OpenRoot(filepath.Dir(src))
	require.NoError(b, err)
	b.Cleanup(func() { root.Close() })
	i = recorded{Install: cniinstall.Install{Plugins: root.FS(), BinDir: filepath.Dir(dst)}}
	if state != "" {
		i.Book = testledger.Open(b, filepath.Join(dir, state))
	}
	return i, src, dst
}

// timings maps each operation, measured in turn with the others, to its durations.
type timings map[string][]time.Duration

func (t timings) measure(name string, f func()) {
	start := time.Now()
	f()
	t[name] = append(t[name], time.Since(start))
}

// report compares ours with each other operation: the ratio of the medians, and of the best
// times.
func (t timings) report(b *testing.B) {
	for name, d := range t {
		slices.Sort(d)
		slices.Sort(t["ours"])
		if name != "ours" {
			b.ReportMetric(float64(t["ours"][len(t["ours"])/2])/float64(d[len(d)/2]), "x-"+name)
			b.ReportMetric(float64(t["ours"][0])/float64(d[0]), "x-"+name+"-at-best")
		}
	}
}

// The plugin is already there and equal, so nothing is written. Compared with cmp, with one
// read (cat), and with hashing (sha256sum).
func BenchmarkCNI1_Equal70MB(b *testing.B) {
	i, src, dst := bigPlugin(b, "")
	require.NoError(b, i.Apply(b.Context()))
	before, err := os.Stat(dst)
	require.NoError(b, err)
	b.SetBytes(bigSize)
	t := timings{}
	for b.Loop() {
		t.measure("ours", func() { require.NoError(b, i.Apply(b.Context())) })
		t.measure("cmp", func() { require.NoError(b, exec.Command("cmp", src, dst).Run()) })
		t.measure("cat", func() { require.NoError(b, exec.Command("cat", dst).Run()) }) // to /dev/null
		if len(t["sha256"]) < 5 {
			t.measure("sha256", func() { readFile(b, sha256.New(), dst) })
		}
	}
	after, err := os.Stat(dst)
	require.NoError(b, err)
	require.Equal(b, before.ModTime(), after.ModTime(), "nothing is written")
	t.report(b)
}

func readFile(b *testing.B, w io.Writer, path string) {
	f, err := os.Open(path)
	require.NoError(b, err)
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 128<<10))
	require.NoError(b, err)
}

// A new plugin, with and without a record, compared with cp and fsync.
func BenchmarkCNI1_New70MB(b *testing.B) {
	for _, recorded := range []string{"", "state"} {
		b.Run("record="+recorded, func(b *testing.B) {
			i, src, dst := bigPlugin(b, recorded)
			b.SetBytes(bigSize)
			require.NoError(b, i.Apply(b.Context()))
			t := timings{}
			for b.Loop() {
				require.NoError(b, os.Remove(dst))
				t.measure("cp+fsync", func() { copyAndSync(b, src, dst+".cp") })
				require.NoError(b, os.Remove(dst+".cp"))
				t.measure("ours", func() { require.NoError(b, i.Apply(b.Context())) })
			}
			t.report(b)
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
