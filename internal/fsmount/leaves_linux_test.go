// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
)

// One of two must mount, and the other find the mount.
func TestBPF1_CG1_TwoAtOnce(t *testing.T) {
	for name, l := range leaves {
		t.Run(name, func(t *testing.T) {
			n := fsmounttest.NewReal(t, false)
			for round := range 50 {
				path := filepath.Join(n.Dir(), fmt.Sprint(round))
				require.Equal(t, []error{nil, nil}, fsmounttest.AtOnce(t, 2, path, l.ensure))
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
				fsmounttest.Crowd(t, n, count)
				cost[count] = fsmounttest.BytesRead(t, func() { require.NoError(t, l.ensure(path)) })
			}
			require.Equal(t, cost[10], cost[10_000], "bytes that are read; mountinfo has a hundred for each mount")
		})
	}
}

func BenchmarkEnsureMounted(b *testing.B) {
	for name, l := range leaves {
		for _, count := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s mounts=%d", name, count), func(b *testing.B) {
				n := fsmounttest.NewReal(b, false)
				path := filepath.Join(n.Dir(), "point")
				require.NoError(b, l.ensure(path))
				fsmounttest.Crowd(b, n, count)
				for b.Loop() {
					if err := l.ensure(path); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
