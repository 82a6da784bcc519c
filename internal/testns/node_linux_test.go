// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
)

func start(t *testing.T) *testns.Node {
	t.Helper()
	testns.Root(t)
	n, err := testns.StartNode(t.Context(), testns.NodeOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// machine is the state that a node must not change.
func machine(t *testing.T) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Machine())
	links, err := net.Interfaces()
	require.NoError(t, err)
	for _, l := range links {
		s["link "+l.Name] = l.Flags.String()
	}
	return s
}

// cgroupOf returns the directory of the node's cgroup on the machine. Nodes of
// other tests may come and go beside it.
func cgroupOf(t *testing.T, n *testns.Node) string {
	t.Helper()
	mounts, err := mountinfo.Read()
	require.NoError(t, err)
	at := slices.IndexFunc(mounts, func(m mountinfo.Mount) bool { return m.FSType == "cgroup2" })
	lines, err := os.ReadFile(filepath.Join(n.Proc(), "1/cgroup"))
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			dir := filepath.Join(mounts[at].Point, path)
			require.Contains(t, dir, "/slipway-node-")
			return dir
		}
	}
	t.Fatal("no cgroup2 in ", string(lines))
	return ""
}

func TestTheMachineStaysAsItIs(t *testing.T) {
	testns.Root(t)
	before := machine(t)
	n, err := testns.StartNode(t.Context(), testns.NodeOptions{Hostname: "other"})
	require.NoError(t, err)
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		for _, dir := range []string{"/etc/cni/net.d", "/opt/cni/bin", "/run/cilium/cgroupv2", "/var/lib/slipway", "/hostproc", "/sys/fs/cgroup/below"} {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		require.NoError(t, unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, ""))
		require.NoError(t, unix.Mount("cgroup2", "/run/cilium/cgroupv2", "cgroup2", 0, ""))
		require.NoError(t, os.WriteFile("/etc/passwd", nil, 0o600))
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("2"), 0))
		return exec.Command("ip", "link", "add", "name", "br-test", "type", "bridge").Run()
	}))
	cgroup := cgroupOf(t, n)
	require.DirExists(t, filepath.Join(cgroup, "below"))
	require.NoError(t, n.Close())
	require.NoError(t, n.Close(), "again")
	require.Empty(t, before.Diff(machine(t)))
	require.NoDirExists(t, cgroup)
	require.NoDirExists(t, "/hostproc")
}

// The same with a seccomp profile that knows none of the calls newer than mount(2).
func TestBPF7_ANodeTakesTheOldMountCallOnly(t *testing.T) {
	testns.Root(t)
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			testns.Enter(t, 0) // a thread of the test's own, whose filter its children have
			require.NoError(t, testns.Refuse(errno, testns.NewMountCalls()...))
			out, err := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^(TestTheMachineStaysAsItIs|TestDoMountsOnTheNode)$").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, 2, strings.Count(string(out), "--- PASS"), "%s", out)
		})
	}
}

// Mounts by f are made on the node, and unmounts there reach f; its /proc is its own.
func TestDoMountsOnTheNode(t *testing.T) {
	n := start(t)
	output := func(name string, args ...string) string {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdout = &out
		require.NoError(t, n.StartCommand(cmd))
		require.NoError(t, cmd.Wait())
		return out.String()
	}
	before := output("cat", "/proc/self/mountinfo")
	require.NoError(t, n.Do(t.Context(), func(ctx context.Context) error {
		self, err := os.Readlink("/proc/self")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(os.Getpid()), self)
		init, err := os.Stat("/proc/1/ns/cgroup")
		require.NoError(t, err)
		own, err := os.Stat("/proc/thread-self/ns/cgroup")
		require.NoError(t, err)
		require.True(t, os.SameFile(init, own), "pid 1 is the node's")
		require.ErrorIs(t, os.WriteFile("/proc/sys/kernel/panic", []byte("0"), 0), unix.EROFS)
		require.NoError(t, unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, ""))
		return os.Mkdir("/sys/fs/bpf/pin", 0o700)
	}))
	require.DirExists(t, filepath.Join(n.Proc(), "../sys/fs/bpf/pin"))
	require.Contains(t, output("cat", "/proc/self/mountinfo"), " /sys/fs/bpf ")
	require.Empty(t, output("umount", "/sys/fs/bpf"))
	require.Equal(t, before, output("cat", "/proc/self/mountinfo"))
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		require.NoDirExists(t, "/sys/fs/bpf/pin")
		return nil
	}))
}

func TestEnterProtectsTheMachinesSysctls(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	const machines, own = "/proc/sys/kernel/panic", "/proc/sys/net/ipv4/ip_forward"
	value, err := os.ReadFile(machines)
	require.NoError(t, err)
	require.ErrorIs(t, os.WriteFile(machines, value, 0), unix.EROFS)
	require.NoError(t, os.WriteFile(own, []byte("1"), 0))
}

// v1 are the mount points of the machine's hierarchies of version 1.
func v1(t *testing.T) (points []string) {
	t.Helper()
	mounts, err := mountinfo.Read()
	require.NoError(t, err)
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			points = append(points, m.Point)
		}
	}
	return points
}

func TestStartSweepsTheCgroupsOfTheDead(t *testing.T) {
	n := start(t)
	live := cgroupOf(t, n)
	var dead []string
	for _, point := range append(v1(t), filepath.Dir(live)) {
		dead = append(dead, filepath.Join(point, "slipway-node-gone"))
	}
	for _, point := range v1(t) {
		dead = append(dead, filepath.Join(point, "slipway-node-half-gone"))
	}
	for _, dir := range dead {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "below"), 0o700))
	}
	start(t)
	for _, dir := range dead {
		require.NoDirExists(t, dir)
	}
	require.DirExists(t, live)
}
