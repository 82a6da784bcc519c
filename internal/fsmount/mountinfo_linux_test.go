// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"os"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/fsmount"
)

// compare reads text as another reader of the same format does.
func compare(t *testing.T, text string) {
	t.Helper()
	own, err := fsmount.ParseMounts(strings.NewReader(text))
	other, otherErr := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
	if err != nil || otherErr != nil {
		return // of what the kernel never writes each refuses something else
	}
	require.Len(t, own, len(other))
	for n, i := range own {
		require.Equal(t, []any{other[n].ID, other[n].Parent, other[n].Root, other[n].Mountpoint, other[n].Options, other[n].FSType},
			[]any{i.ID, i.Parent, i.Root, i.Point, strings.Join(i.Options, ","), i.FSType})
	}
}

func TestBPF2_ReadsLikeOthers(t *testing.T) {
	raw, err := os.ReadFile(fsmount.MountinfoPath)
	require.NoError(t, err)
	_, err = fsmount.ParseMounts(strings.NewReader(string(raw)))
	require.NoError(t, err)
	compare(t, string(raw))
	compare(t, mountinfoSample)
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountinfoSample)
	f.Add("1 2 0:1 / /\\1 rw - a b c")
	f.Add("1 2 0:1 /\\ /\\04 rw tag - a b c d")
	f.Fuzz(func(t *testing.T, text string) {
		infos, err := fsmount.ParseMounts(strings.NewReader(text))
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(infos), strings.Count(text, "\n")+1)
		for _, i := range infos {
			require.NotEmpty(t, i.Options)
			got, ok := fsmount.Holding(infos, i.Point)
			require.True(t, ok || !strings.HasPrefix(i.Point, "/"))
			if ok && strings.HasPrefix(i.Point, "/") {
				require.GreaterOrEqual(t, len(got.Point), len(strings.TrimSuffix(i.Point, "/")))
			}
		}
	})
}
