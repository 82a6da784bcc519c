// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

// neverRead gives the folder the access time of one that has never been listed; still returns
// whether that is still so.
func neverRead(t *testing.T, dir string) (still func() bool) {
	t.Helper()
	write(t, dir+"/beside", "", 0o600)
	require.NoError(t, os.Remove(dir+"/beside"))
	never := unix.Timespec{Sec: 1}
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{never, {Nsec: unix.UTIME_OMIT}}, 0))
	return func() bool {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(dir, &st))
		return st.Atim == never
	}
}

// The guard lists no folder, no matter how many unrelated names there are or how often one
// appears: the cost of a poll depends only on the files that matter.
func TestCNI7_SEC6_APollListsNoFolder(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n, g := guardedNodeIn(t, fastDir(t, "/bin/true"))
		require.NoError(t, os.Remove(n.confFile()))
		g.repair()
		time.Sleep(time.Minute) // in the synctest bubble's time
		for _, dir := range []string{n.bin, n.conf} {
			still := neverRead(t, dir)
			_, err := os.ReadDir(dir)
			require.NoError(t, err)
			if still() {
				testns.SkipKernel(t, "times of access")
			}
			still = neverRead(t, dir)
			time.Sleep(time.Minute)
			require.True(t, still(), "%s was listed", dir)
		}
		require.Empty(t, g.repaired)
	})
}
