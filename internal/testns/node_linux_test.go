// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
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

func TestANodeHasWhatANodeHas(t *testing.T) {
	n := start(t)
	machineCgroup, err := os.Stat("/proc/self/ns/cgroup")
	require.NoError(t, err)
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		for dir, want := range map[string][]string{
			"/opt": nil, "/run": {"lock"}, "/var/lib": nil, "/sys/fs/bpf": nil, "/sys/class/net": {"lo"},
		} {
			require.Equal(t, want, list(t, dir), dir)
		}
		name, err := os.Hostname()
		require.NoError(t, err)
		require.Equal(t, "slipway-node", name)

		lo, err := net.InterfaceByName("lo")
		require.NoError(t, err)
		require.NotZero(t, lo.Flags&net.FlagUp)

		var st unix.Statfs_t
		require.NoError(t, unix.Statfs("/sys/fs/cgroup", &st))
		require.EqualValues(t, unix.CGROUP2_SUPER_MAGIC, st.Type)
		require.FileExists(t, "/sys/fs/cgroup/cgroup.type", "not the machine's root cgroup")
		inside, err := os.Stat("/proc/1/ns/cgroup")
		require.NoError(t, err)
		require.False(t, os.SameFile(machineCgroup, inside))

		mounts, err := mountinfo.Read()
		require.NoError(t, err)
		require.True(t, mountinfo.On(mounts, "/")[0].Shared())

		// The machine's objects are protected.
		require.ErrorIs(t, os.WriteFile("/proc/sys/kernel/panic", []byte("0"), 0), unix.EROFS)
		for _, path := range []string{"/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger"} {
			if err := unix.Access(path, unix.W_OK); !errors.Is(err, fs.ErrNotExist) {
				require.ErrorIs(t, err, unix.EROFS, path)
			}
		}
		require.ErrorIs(t, os.WriteFile("/usr/slipway-test", nil, 0o600), unix.EROFS)
		require.ErrorIs(t, os.WriteFile("/sys/kernel/mm/ksm/run", []byte("0"), 0), unix.EROFS)
		return nil
	}))
}

// The same with a seccomp profile that knows none of the calls newer than mount(2).
func TestBPF7_ANodeTakesTheOldMountCallOnly(t *testing.T) {
	testns.Root(t)
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			testns.Enter(t, 0) // a thread of the test's own, whose filter its children have
			require.NoError(t, testns.Refuse(errno, testns.NewMountCalls()...))
			out, err := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^(TestTheMachineStaysAsItIs|TestANodeHasWhatANodeHas|TestDoMountsOnTheNode)$").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, 3, strings.Count(string(out), "--- PASS"), "%s", out)
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
		require.Empty(t, list(t, "/sys/fs/bpf"))
		return nil
	}))
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestStartCommandRunsOnTheNode(t *testing.T) {
	n := start(t)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `pwd; hostname; cat /proc/self/cgroup | grep ^0; test "$(readlink /proc/self)" = $$ || echo own /proc; readlink /proc/1/exe; exit 7`)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, n.StartCommand(cmd))
	err := cmd.Wait()
	exit := new(exec.ExitError)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	shell, lookErr := os.Readlink(filepath.Join(n.Proc(), "1/exe"))
	require.NoError(t, lookErr)
	require.Equal(t, "/\nslipway-node\n0::/\nown /proc\n"+shell+"\n", out.String())
}

func TestProcShowsTheNode(t *testing.T) {
	n := start(t)
	require.DirExists(t, filepath.Join(n.Proc(), "1/ns"))
	here, err := os.Readlink("/proc/self/ns/mnt")
	require.NoError(t, err)
	there, err := os.Readlink(filepath.Join(n.Proc(), "1/ns/mnt"))
	require.NoError(t, err)
	require.NotEqual(t, here, there)
	require.NoDirExists(t, filepath.Join(n.Proc(), "self"), "another pid namespace")
}

func TestKillEndsPrograms(t *testing.T) {
	n := start(t)
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, n.StartCommand(cmd))
	require.NoError(t, n.Kill())
	require.ErrorContains(t, cmd.Wait(), "signal: killed")
	require.NoError(t, n.Close())
	require.Error(t, n.StartCommand(exec.CommandContext(t.Context(), "true")))
}

func TestStartSweepsTheCgroupsOfTheDead(t *testing.T) {
	n := start(t)
	live := cgroupOf(t, n)
	dead := filepath.Join(filepath.Dir(live), "slipway-node-dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "below"), 0o700))
	other := start(t)
	require.NoDirExists(t, dead)
	require.DirExists(t, live)
	require.NoError(t, other.Close())
	require.NoError(t, n.Do(t.Context(), func(context.Context) error { return nil }))
}

func TestStartIsCancelled(t *testing.T) {
	testns.Root(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := testns.StartNode(ctx, testns.NodeOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// If no cgroup2 is mounted, as with version 1 alone, the error tells how to mount one.
func TestNoCgroup2SaysWhatItTakes(t *testing.T) {
	testns.Enter(t, testns.Mount)
	mounts, err := mountinfo.Read()
	require.NoError(t, err)
	for _, m := range slices.Backward(mounts) {
		if m.FSType == "cgroup2" {
			require.NoError(t, unix.Unmount(m.Point, unix.MNT_DETACH))
		}
	}
	_, err = testns.StartNode(t.Context(), testns.NodeOptions{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "mount -t cgroup2 none /mnt")
}

func TestARootOfItsOwnMaking(t *testing.T) {
	testns.Root(t)
	node, err := testns.StartNode(t.Context(), testns.NodeOptions{Root: func(dir string) error {
		for _, folder := range []string{"dev", "proc", "sys", "image"} {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
				return err
			}
		}
		return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}})
	require.NoError(t, err)
	defer node.Close()
	require.NoError(t, node.Do(t.Context(), func(context.Context) error {
		require.NoDirExists(t, "/etc")
		require.DirExists(t, "/image")
		require.FileExists(t, "/sys/fs/cgroup/cgroup.procs")
		require.ErrorIs(t, os.Mkdir("/etc", 0o755), unix.EROFS)
		return nil
	}))

	_, err = testns.StartNode(t.Context(), testns.NodeOptions{Root: func(string) error { return errors.New("no root today") }})
	require.ErrorContains(t, err, "no root today")
}
