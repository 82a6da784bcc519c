// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestSEC10_ProcOfTheHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	require.NoError(t, hostns.Host{Proc: node.Proc()}.Check(), "seen from the machine")

	// A directory with all the files looked for, but no proc file system.
	imitation := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join("/proc", strconv.Itoa(os.Getpid())), filepath.Join(imitation, "1")))
	require.ErrorContains(t, hostns.Host{Proc: imitation}.Check(), "it is not a proc file system")
	require.ErrorIs(t, hostns.Host{Proc: "/nonexistent"}.Check(), fs.ErrNotExist)
}

// A proc file system that shows the program's own mount namespace is not a host's, unless
// /proc itself is given, which is deliberate.
func TestSEC10_TheOwnNamespaceIsNoHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	out, err := node.Command("sh", "-euc", "mkdir /run/proc; mount -n --bind /proc /run/proc").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for proc, want := range map[string]string{"/run/proc": "/run/proc: not the host's: its pid 1 is in this mount namespace", "/proc": "<nil>"} {
		cmd := node.Command(os.Args[0], proc)
		cmd.Env = append(os.Environ(), helperEnv+"=check")
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), want)
	}
}

// The kernel's first network namespace is known by values that no other one has.
func TestSEC10_TheFirstNetworkNamespace(t *testing.T) {
	own, err := os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	if own == "net:[4026531833]" { // NET_NS_INIT_INO, since Linux 6.18
		require.True(t, hostns.InFirstNetwork())
	}
	testns.Enter(t, testns.Mount|testns.Net)
	require.FileExists(t, "/proc/sys/net/core/somaxconn", "this one has values, too")
	require.False(t, hostns.InFirstNetwork())
}
