// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package mountinfo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

const mountinfoSample = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:40 / /sys/fs/bpf rw,nosuid shared:2 master:3 - bpf bpf rw,mode=700
41 40 0:41 /a\040b /sys/fs/bpf ro - tmpfs none rw
42 27 0:42 / /mnt/tab\011\134\043end rw unbindable - fuse.x x\040y rw
`

// BPF 2: the last on a path is the visible one; escapes are decoded.
func TestBPF2_ParseMounts(t *testing.T) {
	mounts, err := mountinfo.Parse(strings.NewReader(mountinfoSample))
	require.NoError(t, err)
	require.Len(t, mounts, 5)
	require.Equal(t, mountinfo.Mount{
		ID: 42, Parent: 27, Dev: "0:42", Root: "/", Point: "/mnt/tab\t\\#end", Options: []string{"rw"}, Tags: []string{"unbindable"},
		FSType: "fuse.x", Source: "x y", Super: "rw",
	}, mounts[4])

	on := mountinfo.On(mounts, "/sys/fs/bpf")
	require.Len(t, on, 2)
	require.True(t, on[0].Whole() && on[0].Shared())
	require.False(t, on[1].Whole() || on[1].Shared())
	require.Equal(t, "/a b", on[1].Root)
}

func TestParseMountsRefuses(t *testing.T) {
	for _, line := range []string{"x", "1 2 0:1 / / rw ext4 x rw", "1 2 0:1 / / rw -", "x 2 0:1 / / rw - a b c", "1 x 0:1 / / rw - a b c"} {
		_, err := mountinfo.Parse(strings.NewReader(line + "\n"))
		require.ErrorContains(t, err, line)
	}
}
