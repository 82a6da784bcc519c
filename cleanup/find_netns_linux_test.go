// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// ownRun gives the test its own /run.
func ownRun(t testing.TB) {
	t.Helper()
	require.NoError(t, unix.Mount("run", "/run", "tmpfs", 0, "mode=0755"))
	target, err := os.Readlink("/var/run")
	require.NoError(t, err)
	require.Equal(t, "/run", target)
}

func netnsOnly() cleanup.Leftovers {
	return cleanup.Leftovers{Ownership: cleanup.Ownership{NetNS: cleanup.CiliumOnRequest().NetNS}, Scope: "all-state"}
}

func TestCLN2_NetworkNamespaces(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	ownRun(t)
	require.Empty(t, inventory(t, netnsOnly()).Items, "without the directory there is nothing")
	for _, name := range []string{"cilium-health", "cni-1234", "other", "xcni-1"} {
		ip(t, "netns add "+name)
	}
	ip(t, "netns add cni-stacked")
	require.NoError(t, unix.Mount("/run/netns/cni-stacked", "/run/netns/cni-stacked", "", unix.MS_BIND, ""))
	files(t, "/run/netns", "cni-dir/x")
	require.NoError(t, os.WriteFile("/run/netns/cni-stale", nil, 0o444))
	require.NoError(t, os.WriteFile("/run/netns/cni-text", []byte("x"), 0o644))
	require.NoError(t, unix.Mkfifo("/run/netns/cni-fifo", 0o600))
	require.NoError(t, os.WriteFile("/run/netns/cni-uts", nil, 0o444))
	require.NoError(t, unix.Mount("/proc/thread-self/ns/uts", "/run/netns/cni-uts", "", unix.MS_BIND, ""))
	require.NoError(t, os.WriteFile("/run/netns/cni-self", nil, 0o444))
	require.NoError(t, unix.Mount("/proc/thread-self/ns/net", "/run/netns/cni-self", "", unix.MS_BIND, ""))
	ip(t, "netns exec other ip link add dev x type veth peer name y")

	// A process keeps running in a namespace that has lost its name.
	sleeper := exec.Command("ip", "netns", "exec", "cni-1234", "cat")
	in, err := sleeper.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, sleeper.Wait())
	})

	c := netOnly()
	require.Empty(t, inventory(t, c).Items, "only on request")
	c = netnsOnly()
	inv := inventory(t, c)
	require.Equal(t, []string{"cilium-health", "cni-1234", "cni-stacked", "cni-stale"}, ofKind("network namespace", inv.Items))
	require.Equal(t, []string{"cni-dir", "cni-fifo", "cni-self", "cni-text", "cni-uts"}, ofKind("network namespace", inv.Left))

	apply(t, c)
	require.Equal(t, "cni-dir\ncni-dir/x\ncni-fifo\ncni-self\ncni-text\ncni-uts\nother\nxcni-1\n",
		run(t, "sh", "-c", "cd /run/netns && find * | sort"))
	require.Contains(t, run(t, "ip", "-n", "other", "-o", "link", "show"), "x@y")
	require.NotContains(t, run(t, "cat", "/proc/thread-self/mountinfo"), "cni-stacked")
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}
