// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

// relyOnTimes has the times of the temporary folder's file system count, whatever
// that is, and reports whether they do outside a test.
func relyOnTimes(t *testing.T, dir string) bool {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	added, undo, err := cniinstall.RelyOnTimes(f)
	require.NoError(t, err)
	t.Cleanup(undo)
	return !added
}

// installLarge installs a large plugin, which the record then knows by sight.
func installLarge(t *testing.T) (n node, i cniinstall.Install) {
	t.Helper()
	n = newNode(t)
	relyOnTimes(t, n.root)
	n.source("large", string(large()))
	i = n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.NotEmpty(t, n.left("large").Seen)
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

// look is what is seen of a plugin now.
func (n node) look(plugin string) (seen string, ok bool) {
	n.t.Helper()
	f, err := os.Open(n.plugin(plugin))
	require.NoError(n.t, err)
	defer f.Close()
	return cniinstall.See(f)
}

func (n node) see(plugin string) string {
	n.t.Helper()
	seen, ok := n.look(plugin)
	require.True(n.t, ok)
	return seen
}

// recordAs puts what was seen of a large plugin into the record.
func (n node) recordAs(seen, quick string) {
	n.t.Helper()
	book, err := record.Open(n.state, "cni")
	require.NoError(n.t, err)
	after := n.left("large")
	after.Seen, after.Quick = seen, quick
	require.NoError(n.t, book.Complete(record.Entry{Object: n.plugin("large"), After: after}))
}

func TestCNI1_ALargePluginIsKnownBySight(t *testing.T) {
	n, i := installLarge(t)
	require.Equal(t, n.see("large"), n.left("large").Seen)
	require.Empty(t, n.left("cilium-cni").Seen, "a small one is as soon read")
	requireConverged(t, i, n.root)

	// That the plugin is not read shows where the record is wrong.
	quick := n.left("large").Quick
	overwrite(t, n.plugin("large"), 1000)
	seen := n.see("large")
	n.recordAs(seen, quick)
	requireConverged(t, i, n.root)

	for name, other := range map[string][2]string{
		"another hash": {seen, "0123456789abcdef"}, "no hash": {seen, ""}, "nothing seen": {"", quick},
		"another boot": {strings.Replace(seen, "boot ", "boot 0", 1), quick},
	} {
		n.recordAs(other[0], other[1])
		changes, err := i.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"write " + n.plugin("large")}, changes, name)
	}
}

// A plugin whose mode was put right is read from then on.
func TestCNI1_ReadAfterARepair(t *testing.T) {
	n, i := installLarge(t)
	require.NoError(t, os.Chmod(n.plugin("large"), 0o700))
	require.NotEqual(t, n.see("large"), n.left("large").Seen)
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("large"), string(large()), 0o755)
	require.Empty(t, n.left("large").Seen)
	requireConverged(t, i, n.root)
}

// A plugin that writes into itself when it is run for its version, from its
// temporary place, is found to differ the next time.
func TestCNI1_ChangedBeforeItIsInItsPlace(t *testing.T) {
	n, _ := installLarge(t)
	itself := `printf x | dd of="$0" bs=1 seek=1048577 conv=notrunc status=none; `
	n.source("cilium-cni", strings.Replace(script("0.3.1", "0.4.0", "1.0.0"), "echo", itself+"echo", 1)+"exit\n#"+strings.Repeat("y", 2<<20))
	i := n.install()
	require.NoError(t, os.Remove(n.confFile())) // it is validated before it is written
	require.NoError(t, i.Apply(t.Context()))
	require.Empty(t, n.left("cilium-cni").Seen)
	requireChanges(t, i, "write "+n.plugin("cilium-cni"))
}

// With tmpfs the times do not follow writes through memory: there every byte is
// compared.
func TestCNI1_InMemoryEveryByteIsCompared(t *testing.T) {
	root, err := os.MkdirTemp("/dev/shm", "cniinstall-") // a tmpfs wherever glibc runs
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	n := newNodeIn(t, root)
	n.source("large", string(large()))
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.Empty(t, n.left("large").Seen)
	throughMemory(t, n.plugin("large"))
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

// throughMemory changes a byte after reading it.
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

// TestCNI1_NoChangeGoesUnseen changes a plugin in every way that leaves its
// size as it is.
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
	if !relyOnTimes(t, t.TempDir()) {
		delete(changes, "in memory") // that is why they do not count: see TestCNI1_InMemoryEveryByteIsCompared
	}
	for name, change := range changes {
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
// it is in its place, while the record is not complete yet, and later; and every
// other time set the time back.
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

	n, _ := installLarge(t)
	dir, err := os.Open(n.bin)
	require.NoError(t, err)
	defer dir.Close()
	_, ok = cniinstall.See(dir)
	require.False(t, ok)

	plugin, err := os.Open(n.plugin("large"))
	require.NoError(t, err)
	defer plugin.Close()
	for range 20 {
		require.NoError(t, os.Chmod(n.plugin("large"), 0o755))
		cniinstall.Settle(plugin)
		var st unix.Stat_t
		var now unix.Timespec
		require.NoError(t, unix.Fstat(int(plugin.Fd()), &st))
		require.NoError(t, unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now))
		require.NotEqual(t, now, st.Ctim, "the next change has another time")
	}
	future := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(n.plugin("large"), future, future))
	cniinstall.Settle(plugin) // comes back
}

func TestCNI1_QuickHashOfWhatCannotBeRead(t *testing.T) {
	broken := iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(large())))
	_, err := cniinstall.QuickOf(t.Context(), broken, largeSize)
	require.ErrorIs(t, err, iotest.ErrTimeout)

	dir, err := os.Open(t.TempDir()) // of which the size is known, and no byte
	require.NoError(t, err)
	defer dir.Close()
	info, err := dir.Stat()
	require.NoError(t, err)
	_, err = cniinstall.QuickOf(t.Context(), dir, info.Size())
	require.Error(t, err)

	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, large(), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range []io.Reader{f, bytes.NewReader(large())} {
		_, err := cniinstall.QuickOf(ctx, r, largeSize)
		require.ErrorIs(t, err, context.Canceled)
	}
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
		whole, err := cniinstall.QuickOf(t.Context(), f, int64(size))
		require.NoError(t, err)
		for name, piecemeal := range map[string]io.Reader{
			"at once": bytes.NewReader(content), "halves": iotest.HalfReader(bytes.NewReader(content)), "pieces": struct{ io.Reader }{bytes.NewReader(content)},
		} {
			sum, err := cniinstall.QuickOf(t.Context(), piecemeal, int64(size))
			require.NoError(t, err)
			require.Equal(t, whole, sum, "%d bytes in %s", size, name)
		}
		other, twice := seen[whole]
		require.False(t, twice, "%d and %d bytes", size, other)
		seen[whole] = size

		for _, wrong := range []int64{int64(size) + 1, max(int64(size)-1, 2)} {
			for _, r := range []io.Reader{f, bytes.NewReader(content)} {
				none, err := cniinstall.QuickOf(t.Context(), r, wrong)
				require.NoError(t, err)
				require.Empty(t, none, "the content has another size")
			}
		}
	}
}
