// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package mountinfo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// For a visible mount, the list and statx(2) of its path agree.
func TestBPF2_ReadsWhatTheKernelSays(t *testing.T) {
	mounts, err := mountinfo.Read()
	require.NoError(t, err)
	seen := 0
	for _, path := range []string{"/", "/proc", "/sys"} {
		on := mountinfo.On(mounts, path)
		if len(on) == 0 {
			continue
		}
		visible := on[len(on)-1]
		var stat unix.Statx_t
		require.NoError(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &stat))
		require.EqualValues(t, stat.Mnt_id, visible.ID)
		require.Equal(t, fmt.Sprintf("%d:%d", stat.Dev_major, stat.Dev_minor), visible.Dev)
		seen++
	}
	require.NotZero(t, seen)
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountinfoSample)
	f.Add("1 2 0:1 / /\\1 rw - a b c")
	f.Add("1 2 0:1 /\\ /\\04 rw tag - a b c d")
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := mountinfo.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(mounts), strings.Count(text, "\n")+1)
		for _, i := range mounts {
			require.NotEmpty(t, i.Options)
			got, ok := mountinfo.Holding(mounts, i.Point)
			require.True(t, ok || !strings.HasPrefix(i.Point, "/"))
			if ok && strings.HasPrefix(i.Point, "/") {
				require.GreaterOrEqual(t, len(got.Point), len(strings.TrimSuffix(i.Point, "/")))
			}
		}
	})
}
