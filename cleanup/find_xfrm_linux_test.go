// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// xfrm returns ip's listing of policies and states, without timers.
func xfrm(t testing.TB) string {
	t.Helper()
	out := run(t, "ip", "-d", "xfrm", "policy", "show") + run(t, "ip", "-d", "xfrm", "state", "show")
	return regexp.MustCompile(`add [-0-9: ]+ use .*`).ReplaceAllString(out, "")
}

// keepStates keeps states that wait for their keys: otherwise they expire after half a minute
// (net.core.xfrm_acq_expires), possibly within a test.
func keepStates(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/net/core/xfrm_acq_expires", []byte("86400"), 0))
}

// Which marks of policies and states are Cilium's; bits outside of the mask do not count.
func TestCLN2_MarksOfXFRM(t *testing.T) {
	t.Parallel()
	for text, owned := range map[string]bool{
		"0xd00/0xf00": true, "0xe00/0xf00": true, "0x3e00/0xff00": true, "0x12343e00/0xffffff00": true, "0x12340d00/0xffff0f00": true,
		"0x0/0x0": false, "0x42/0xffffffff": false, "0xd00/0x100": false, "0xe00/0xffffffff": false, "0x3d00/0xff00": false,
		"0x12340c00/0xffff0f00": false, "0xe42/0xfff": false, "0xd42/0xffffffff": false, // equal to another's number by chance
	} {
		of, err := cleanup.CiliumOnRequest().Of(cleanup.Things{XFRM: []cleanup.Mark{mark(t, text)}})
		require.NoError(t, err)
		require.Equal(t, owned, len(of.XFRM) == 1, text)
	}
}
