// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Several items cannot be removed, and some disappear meanwhile: the former are reported, and
// all others are removed.
func TestCLN4_EachFailureIsNamedAndTheRestGoes(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	c := dirtyNode(t)
	state := c.Ownership.StateDirs[0]
	stuck := filepath.Join(state, "state", "stuck")
	require.NoError(t, os.WriteFile(stuck, nil, 0o600))
	run(t, "chattr", "+i", stuck)
	t.Cleanup(func() { run(t, "chattr", "-i", stuck) })
	busy, err := os.Open(filepath.Join(state, "m", "x"))
	require.NoError(t, err)
	defer busy.Close()
	ip(t,
		"link set dev cilium_net up", "link set dev cilium_host up",
		"-4 route add 10.0.1.0/24 dev cilium_host",
		"-4 route add 10.0.2.0/24 dev cilium_host",
		"-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004",
		"-4 rule add pref 9 fwmark 0x200/0xf00 iif eth0 lookup 2004", // indistinguishable
		"-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005",
	)
	pinAt(t, array(t, "x"), c.BPFRoots[0], "cilium", "y")
	inv := inventory(t, c)

	var failed, gone []string
	c.Progress = func(done, total int, item string, err error) {
		require.Equal(t, len(inv.Items), total)
		if done == 1 { // meanwhile
			ip(t, "route del 10.0.2.0/24")
			ip(t, "rule del pref 10")
			run(t, "tc", "qdisc", "del", "dev", "eth1", "clsact")
			require.NoError(t, os.Remove(filepath.Join(c.BPFRoots[0], "cilium", "y")))
		}
		if err != nil {
			failed = append(failed, item)
		} else {
			gone = append(gone, item)
		}
	}
	err = c.Remove(context.Background(), inv.Items)
	require.Equal(t, []string{
		"ip rule IPv4 9: fwmark 0x200/0xf00 lookup 2004",
		"mount " + state + "/m",
		"state directory " + state,
	}, failed)
	require.ElementsMatch(t, objects(inv.Items), append(gone, failed...))
	for _, item := range failed {
		require.ErrorContains(t, err, "remove "+item+": ")
	}
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "remove mount "+state+"/m: device or resource busy (a process has a file open")
	require.ErrorContains(t, err, stuck+": operation not permitted (needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner, and no immutable attribute")
	require.Equal(t, "m\nm/x\nstate\nstate/stuck\n", strings.Join(sorted(strings.SplitAfter(
		run(t, "find", state, "-mindepth", "1", "-printf", "%P\n"), "\n")), ""))
	require.NotContains(t, run(t, "ip", "-o", "link", "show"), "cilium")
	require.NotContains(t, routing(t), "10.0.")
	require.NoDirExists(t, filepath.Join(c.BPFRoots[0], "cilium"))
}

// A link of ours that disappears while routes, programs and the link itself
// are removed.
func TestCLN4_LinkThatDisappearsAtEachStep(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for step := range 4 {
		c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", BPFRoots: []string{bpfDir(t)}, CgroupRoot: noCgroup}
		endpoints(t, 1)
		ip(t, "link set dev p00000000 up")
		ip(t, "link set dev lxc00000000 up")
		ip(t, "-4 route add 10.0.1.0/24 dev lxc00000000")
		ip(t, "-4 route add 10.0.2.0/24 dev lxc00000000")
		ip(t, "-6 route add fd00:1::/64 dev lxc00000000")
		inv := inventory(t, c)
		require.Len(t, inv.Items, 6)
		if step == 0 {
			ip(t, "link del dev lxc00000000")
		}
		c.Progress = func(done, _ int, _ string, err error) {
			require.NoError(t, err)
			if done == step {
				ip(t, "link del dev lxc00000000")
			}
		}
		require.NoError(t, c.Remove(context.Background(), inv.Items), "step %d", step)
		require.Equal(t, 1, linkCount(t))
	}
}
