// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const largeSize = 5<<20 + 77 // read in pieces, the last one not full

// large is the content of a plugin.
func large() []byte {
	content := make([]byte, largeSize)
	rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

// installLarge installs a plugin with that content.
func installLarge(t *testing.T) (n node, i recorded) {
	t.Helper()
	n = newNode(t)
	n.source("large", string(large()))
	i = n.install()
	require.NoError(t, i.Apply(t.Context()))
	return n, i
}

// A plugin that modifies its own file when run for its version, still at its temporary path, is
// found to differ in the next run.
func TestCNI1_ChangedBeforeItIsInItsPlace(t *testing.T) {
	n, _ := installLarge(t)
	itself := `printf x | dd of="$0" bs=1 seek=1048577 conv=notrunc status=none; `
	n.source("cilium-cni", strings.Replace(script("0.3.1", "0.4.0", "1.0.0"), "echo", itself+"echo", 1)+"exit\n#"+strings.Repeat("y", 2<<20))
	i := n.install()
	require.NoError(t, os.Remove(n.confFile())) // a configuration is validated before it is written
	require.NoError(t, i.Apply(t.Context()))
	requireChanges(t, i, "write "+n.plugin("cilium-cni"))
}

// On tmpfs, writes through a memory mapping do not update the times.
func TestCNI1_InMemoryEveryByteIsCompared(t *testing.T) {
	root, err := os.MkdirTemp("/dev/shm", "cniinstall-") // a tmpfs wherever glibc runs
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	n := newNodeIn(t, root)
	n.source("large", string(large()))
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	throughMemory(t, n.plugin("large"))
	requireChanges(t, i, "write "+n.plugin("large"))
}

func requireChanges(t *testing.T, i recorded, want ...string) {
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

// throughMemory changes a byte through a memory mapping, after reading it.
func throughMemory(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, largeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	mapped[3<<20] ^= 1
	require.NoError(t, unix.Munmap(mapped))
}

func flip(t *testing.T, f *os.File, at int64) {
	t.Helper()
	b := []byte{0}
	_, err := f.ReadAt(b, at)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
	require.NoError(t, err)
}

// TestCNI1_NoChangeGoesUnseen changes a plugin in every way that keeps its size.
func TestCNI1_NoChangeGoesUnseen(t *testing.T) {
	changes := map[string]func(t *testing.T, path string){
		"in place": func(t *testing.T, path string) { overwrite(t, path, largeSize-1) },
		"in place, with the time set back": func(t *testing.T, path string) {
			before, err := os.Stat(path)
			require.NoError(t, err)
			overwrite(t, path, 0)
			require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
		},
		"in memory": throughMemory,
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
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			n, i := installLarge(t)
			change(t, n.plugin("large"))
			requireChanges(t, i, "write "+n.plugin("large"))
			require.NoError(t, i.Apply(t.Context()))
			requireContent(t, n.plugin("large"), string(large()), 0o755)
			requireConverged(t, i, n.root)
		})
	}
}

// A plugin that was rewritten with the same content is read, and not written.
func TestCNI1_WhatLooksAnotherWayIsRead(t *testing.T) {
	n, i := installLarge(t)
	require.NoError(t, os.WriteFile(n.plugin("large"), large(), 0o755))
	requireConverged(t, i, n.root)
}

// A newer version of the same size is detected, wherever it differs.
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

// TestCNI1_WrittenInTheSameMoment lets another process write into the plugin as soon as it is
// in place, before the record is complete and later, and resets the file's times in every other
// round.
func TestCNI1_WrittenInTheSameMoment(t *testing.T) {
	n, i := installLarge(t)
	for round := range 12 { // each moment with and without resetting the times
		content := large()
		content[0] = byte(round)
		n.source("large", string(content))
		before, err := os.Stat(n.plugin("large"))
		require.NoError(t, err)
		var writer sync.WaitGroup
		var failed atomic.Bool
		wrote := false
		writer.Go(func() {
			for !failed.Load() {
				f, err := os.OpenFile(n.plugin("large"), os.O_RDWR, 0)
				if err != nil {
					continue
				}
				if now, err := f.Stat(); err == nil && !os.SameFile(before, now) {
					time.Sleep(time.Duration(round%6) * time.Millisecond)
					flip(t, f, 77)
					if round%2 == 1 {
						require.NoError(t, os.Chtimes(n.plugin("large"), now.ModTime(), now.ModTime()))
					}
					wrote = true
				}
				f.Close()
				if wrote {
					return
				}
			}
		})
		err = i.Apply(t.Context())
		failed.Store(err != nil)
		writer.Wait()
		require.NoError(t, err)
		require.True(t, wrote)
		requireChanges(t, i, "write "+n.plugin("large"))
		require.NoError(t, i.Apply(t.Context()))
		requireContent(t, n.plugin("large"), string(content), 0o755)
	}
}
