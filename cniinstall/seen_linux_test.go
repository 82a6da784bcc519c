// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/record"
)

const largeSize = 5<<20 + 77 // three windows, of which the last is not full

// large is content of a plugin that is worth seeing.
func large() []byte {
	content := make([]byte, largeSize)
	rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

// installLarge installs a large plugin, which the record then knows by sight.
func installLarge(t *testing.T) (n node, i cniinstall.Install) {
	t.Helper()
	n = newNode(t)
	n.source("large", string(large()))
	i = n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.NotEmpty(t, n.left("large").Seen, "times are kept in %s", n.root)
	return n, i
}

// left is how the record says that a plugin was left.
func (n node) left(plugin string) record.State {
	n.t.Helper()
	book, err := record.Open(n.state, "cni")
	require.NoError(n.t, err)
	e, known := book.Lookup(n.plugin(plugin))
	require.True(n.t, known && e.Done)
	return e.After
}

// see is what is seen of a plugin now.
func (n node) see(plugin string) string {
	n.t.Helper()
	f, err := os.Open(n.plugin(plugin))
	require.NoError(n.t, err)
	defer f.Close()
	seen, ok := cniinstall.See(f)
	require.True(n.t, ok)
	return seen
}

func TestCNI1_ALargePluginIsKnownBySight(t *testing.T) {
	n, i := installLarge(t)
	require.Equal(t, n.see("large"), n.left("large").Seen)
	require.Empty(t, n.left("cilium-cni").Seen, "a small one is as soon read")
	requireConverged(t, i, n.root)

	// That the plugin is not read shows where the record is wrong.
	overwrite(t, n.plugin("large"), 1000)
	book, err := record.Open(n.state, "cni")
	require.NoError(t, err)
	after := n.left("large")
	after.Seen = n.see("large")
	require.NoError(t, book.Complete(record.Entry{Object: n.plugin("large"), After: after}))
	requireConverged(t, i, n.root)

	// What is another quick hash to this version is read.
	after.Quick = "0123456789abcdef"
	require.NoError(t, book.Complete(record.Entry{Object: n.plugin("large"), After: after}))
	requireChanges(t, i, "write "+n.plugin("large"))
}

func requireChanges(t *testing.T, i cniinstall.Install, want ...string) {
	t.Helper()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, changes)
}

// overwrite changes a byte in place.
func overwrite(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	flip(t, f, at)
}

func flip(t *testing.T, f *os.File, at int64) {
	t.Helper()
	b := []byte{0}
	_, err := f.ReadAt(b, at)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
	require.NoError(t, err)
}

// TestCNI1_NoChangeGoesUnseen changes a plugin in every way that leaves its
// size as it is.
func TestCNI1_NoChangeGoesUnseen(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"in place": func(t *testing.T, path string) { overwrite(t, path, largeSize-1) },
		"in place, with the time set back": func(t *testing.T, path string) {
			before, err := os.Stat(path)
			require.NoError(t, err)
			overwrite(t, path, 0)
			require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
		},
		"in memory": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			mapped, err := unix.Mmap(int(f.Fd()), 0, largeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			require.NoError(t, err)
			mapped[3<<20] ^= 1
			require.NoError(t, unix.Munmap(mapped))
		},
		"through another name": func(t *testing.T, path string) {
			require.NoError(t, os.Link(path, path+".link"))
			overwrite(t, path+".link", 2<<20)
			require.NoError(t, os.Remove(path+".link"))
		},
		"by another file of the same time": func(t *testing.T, path string) {
			before, err := os.Stat(path)
			require.NoError(t, err)
			content := large()
			content[1] ^= 1
			require.NoError(t, os.WriteFile(path+".new", content, 0o755))
			require.NoError(t, os.Chtimes(path+".new", before.ModTime(), before.ModTime()))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"by cutting it and growing it": func(t *testing.T, path string) {
			require.NoError(t, os.Truncate(path, 4096))
			require.NoError(t, os.Truncate(path, largeSize))
		},
		"by punching a hole": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, 4096))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := installLarge(t)
			change(t, n.plugin("large"))
			requireChanges(t, i, "write "+n.plugin("large"))
			require.NoError(t, i.Apply(t.Context()))
			requireContent(t, n.plugin("large"), string(large()), 0o755)
			require.Equal(t, n.see("large"), n.left("large").Seen)
			requireConverged(t, i, n.root)
		})
	}
}

// A plugin that looks another way, and is the same, is not written.
func TestCNI1_WhatLooksAnotherWayIsRead(t *testing.T) {
	n, i := installLarge(t)
	require.NoError(t, os.WriteFile(n.plugin("large"), large(), 0o755))
	require.NotEqual(t, n.see("large"), n.left("large").Seen)
	requireConverged(t, i, n.root)
}

// A newer version of the same size is found, wherever it differs.
func TestCNI1_ANewerVersionOfTheSameSize(t *testing.T) {
	n, i := installLarge(t)
	content := large()
	for _, at := range []int{0, 128<<10 - 1, 128 << 10, 2<<20 - 1, 2 << 20, 4 << 20, largeSize - 1} {
		content[at] ^= 1
		n.source("large", string(content))
		requireChanges(t, i, "write "+n.plugin("large"))
		require.NoError(t, i.Apply(t.Context()))
		requireContent(t, n.plugin("large"), string(content), 0o755)
		requireConverged(t, i, n.root)
	}
	n.source("large", string(content)+"x")
	requireChanges(t, i, "write "+n.plugin("large"))
}

// TestCNI1_WrittenInTheSameMoment has somebody write into the plugin as soon as
// it is in its place, while the record is not complete yet, and later.
func TestCNI1_WrittenInTheSameMoment(t *testing.T) {
	n, i := installLarge(t)
	for round := range 60 {
		content := large()
		content[0] = byte(round)
		n.source("large", string(content))
		before, err := os.Stat(n.plugin("large"))
		require.NoError(t, err)
		var writer sync.WaitGroup
		wrote := false
		writer.Go(func() {
			for start := time.Now(); time.Since(start) < 5*time.Second; {
				f, err := os.OpenFile(n.plugin("large"), os.O_RDWR, 0)
				if err != nil {
					continue
				}
				if now, err := f.Stat(); err == nil && !os.SameFile(before, now) {
					time.Sleep(time.Duration(round%6) * time.Millisecond)
					flip(t, f, 77)
					wrote = true
				}
				f.Close()
				if wrote {
					return
				}
			}
		})
		err = i.Apply(t.Context())
		writer.Wait()
		require.NoError(t, err)
		require.True(t, wrote)
		requireChanges(t, i, "write "+n.plugin("large"))
		require.NoError(t, i.Apply(t.Context()))
		requireContent(t, n.plugin("large"), string(content), 0o755)
	}
}

// Nothing is taken from the times of what is no file system with a clock.
func TestCNI1_TimesThatSayNothing(t *testing.T) {
	f, err := os.Open("/proc/self/status")
	require.NoError(t, err)
	defer f.Close()
	_, ok := cniinstall.See(f)
	require.False(t, ok)
}

func TestCNI1_QuickHash(t *testing.T) {
	seen := map[string]int{}
	for _, size := range []int{0, 1, 1000, 128 << 10, 2<<20 - 1, 2 << 20, 2<<20 + 1, largeSize} {
		content := large()[:size]
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		whole, err := cniinstall.QuickOf(f, int64(size))
		require.NoError(t, err)
		for name, piecemeal := range map[string]io.Reader{
			"at once": bytes.NewReader(content), "halves": iotest.HalfReader(bytes.NewReader(content)), "pieces": struct{ io.Reader }{bytes.NewReader(content)},
		} {
			sum, err := cniinstall.QuickOf(piecemeal, int64(size))
			require.NoError(t, err)
			require.Equal(t, whole, sum, "%d bytes in %s", size, name)
		}
		other, twice := seen[whole]
		require.False(t, twice, "%d and %d bytes", size, other)
		seen[whole] = size

		for _, wrong := range []int64{int64(size) + 1, int64(size) - 1} {
			for _, r := range []io.Reader{f, bytes.NewReader(content)} {
				none, err := cniinstall.QuickOf(r, wrong)
				require.NoError(t, err)
				require.Empty(t, none, "the content has another size")
			}
		}
	}
}
