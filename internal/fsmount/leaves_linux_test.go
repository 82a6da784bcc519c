// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// One of two must mount, and the other find the mount.
func TestBPF1_CG1_TwoAtOnce(t *testing.T) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			n := fsmounttest.NewReal(t, false)
			for round := range 50 {
				path := filepath.Join(n.Dir(), fmt.Sprint(round))
				require.Equal(t, []error{nil, nil}, callAtOnce(t, 2, path, l.ensure))
				require.Equal(t, []string{l.fstype}, n.Mounts(path))
			}
		})
	}
}

func TestBPF6_SameCostWith10And10000Mounts(t *testing.T) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			n := fsmounttest.NewReal(t, false)
			path := filepath.Join(n.Dir(), "point")
			require.NoError(t, l.ensure(path))
			cost := map[int]int{}
			for _, count := range []int{10, 10_000} {
				crowd(t, n, count)
				cost[count] = bytesRead(t, func() { require.NoError(t, l.ensure(path)) })
			}
			require.Equal(t, cost[10], cost[10_000], "bytes that are read; mountinfo has a hundred for each mount")
		})
	}
}

// The time of a look when all is mounted, beside that with a thousand times the mounts.
func BenchmarkBPF6_EnsureMounted(b *testing.B) {
	for name, l := range leaves {
		for _, count := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/mounts=%d", name, count), func(b *testing.B) {
				n := fsmounttest.NewReal(b, false)
				path := filepath.Join(n.Dir(), "point")
				require.NoError(b, l.ensure(path))
				crowd(b, n, count)
				for b.Loop() {
					require.NoError(b, l.ensure(path))
				}
			})
		}
	}
}

// In another mount namespace, only its source tells a mount.
func TestPLAN6_InAnotherMountNamespaceAMountIsKnownByItsSource(t *testing.T) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			n := fsmounttest.NewReal(t, false)
			fsmounttest.Mkdir(t, n, "run", "point") // else its removal would detach the mount everywhere
			m := l.applied(t, n)
			copied := testns.Process(t, testns.Mount, "")
			undo := func() error { return hostns.Do(t.Context(), copied, []string{"mnt"}, m.Undo) }
			require.NoError(t, hostns.Do(t.Context(), copied, []string{"mnt"}, func(context.Context) error {
				n.Unmount(m.path)
				n.Put(m.path, l.fstype, "")
				return nil
			}))
			require.ErrorIs(t, undo(), ledger.ErrChanged)
			require.Len(t, mountsIn(t, copied, m.path), 1)

			copied = testns.Process(t, testns.Mount, "")
			require.NoError(t, undo())
			require.Empty(t, mountsIn(t, copied, m.path))
			require.Equal(t, []string{l.fstype}, n.Mounts(m.path), "those of other namespaces stay")
		})
	}
}

func mountsIn(t *testing.T, procDir, path string) []mountinfo.Mount {
	t.Helper()
	f, err := os.Open(filepath.Join(procDir, "mountinfo"))
	require.NoError(t, err)
	defer f.Close()
	infos, err := mountinfo.Parse(f)
	require.NoError(t, err)
	return mountinfo.On(infos, path)
}

// exchanging is a kernel on which another process exchanges a mount after it was read.
type exchanging struct {
	fsmount.Real
	reads    int // until then
	exchange func()
}

func (k *exchanging) Stat(path string) (fstype, root, mount string, err error) {
	fstype, root, mount, err = k.Real.Stat(path)
	if k.reads--; k.reads == 0 {
		k.exchange()
	}
	return fstype, root, mount, err
}

func TestSEC4_OnlyTheMountThatWasReadIsUndone(t *testing.T) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			// The mount is read to plan, and before the write, and each time looked at twice.
			for reads, want := range map[int]error{3: ledger.ErrChanged, 4: unix.EINVAL} {
				n := fsmounttest.NewReal(t, false)
				path := fsmounttest.Mkdir(t, n, "point")
				k := &exchanging{}
				m := testledger.Step{Wanter: l.mount(path, k), Book: testledger.Open(t, testledger.Dir(t))}
				require.NoError(t, m.Apply(t.Context()))
				var theirs []mountinfo.Mount // not told by its source: Linux before 5.19 takes none for a bpffs
				k.reads, k.exchange = reads, func() {
					n.Unmount(path)
					require.NoError(t, k.Mount("slipway-another-agents", path, l.fstype, ""))
					theirs = on(t, path)
				}
				require.ErrorIs(t, m.Undo(t.Context()), want)
				require.LessOrEqual(t, k.reads, 0)
				require.Len(t, theirs, 1)
				require.Equal(t, theirs, on(t, path))
			}
		})
	}
}
