// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// veth adds a pair of links that are up.
func veth(t *testing.T, name, peer string) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	link := &netlink.Veth{LinkAttrs: attrs, PeerName: peer}
	require.NoError(t, netlink.LinkAdd(link))
	require.NoError(t, netlink.LinkSetUp(link))
	other, err := netlink.LinkByName(peer)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(other))
}

// values reads everything below net/ipv4 and net/ipv6 that can be read. The
// neighbour tables' and routers' timers are left out.
func values(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"net/ipv4", "net/ipv6"} {
		err := filepath.WalkDir("/proc/sys/"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(path, "/neigh/") {
				return err
			}
			if value, err := os.ReadFile(path); err == nil {
				all[strings.TrimPrefix(path, "/proc/sys/")] = strings.TrimSpace(string(value))
			}
			return nil
		})
		require.NoError(t, err)
	}
	return all
}

func differing(a, b map[string]string) map[string]string {
	d := maps.Clone(b)
	maps.DeleteFunc(d, func(key, value string) bool { return a[key] == value })
	return d
}

func TestSYS2_RealReadOnlyKernel(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net) // read-only except for net
	k := sysctl.Kernel{}
	value, err := k.Get("kernel.pid_max")
	require.NoError(t, err)
	require.NoError(t, k.Set(sysctl.Setting{Key: "kernel.pid_max", Value: value}), "already right")
	other := sysctl.Setting{Key: "kernel.pid_max", Value: value + "0"}
	err = k.Set(other)
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorContains(t, err, "kernel.pid_max")
	require.ErrorContains(t, err, "procMount")
	require.Equal(t, "sysctl.read-only", code.Of(err))

	other.IgnoreFailure = true
	require.NoError(t, k.Set(other))
	require.Empty(t, check(t, testledger.Step{Wanter: sysctl.Settings{Values: []sysctl.Setting{other}}}))
}

func TestSYS2_MissingCapabilityIsNamed(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	// Another effective user has no capability, and the file's mode is for root.
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)) // this thread only
	require.Zero(t, errno)
	err := sysctl.Kernel{}.Set(sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1"})
	_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 0, ^uintptr(0))
	require.Zero(t, errno)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "CAP_NET_ADMIN")
}

// Root may open these keys, and only CAP_SYS_ADMIN may write them.
func TestSYS2_WhatACapabilityIsMissingForIsKnownBeforehand(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := t.TempDir()
	var settings []sysctl.Setting
	for _, key := range []string{"net/core/bpf_jit_enable", "kernel/unprivileged_bpf_disabled", "kernel/timer_migration"} {
		file := filepath.Join(root, key)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("2\n"), 0o644))
		settings = append(settings, sysctl.Setting{Key: sysctl.Key(key), Value: "1", IgnoreFailure: true})
	}
	s := testledger.Step{Wanter: sysctl.Settings{Kernel: sysctl.KernelAt(root), Values: settings}}
	require.Len(t, check(t, s), 3)
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	require.NoError(t, unix.Capget(&hdr, &caps[0]))
	without := caps
	without[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	require.NoError(t, unix.Capset(&hdr, &without[0]))
	changes := check(t, s)
	require.NoError(t, unix.Capset(&hdr, &caps[0]))
	require.Equal(t, []string{"set kernel.timer_migration = 1 (is 2)"}, changes)
}

func TestSYS1_ALinkBelowProcSysIsNotFollowedOut(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("0\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "net")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "kernel"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "kernel", "x"), []byte("0\n"), 0o600))
	k := sysctl.KernelAt(root)
	_, err := k.Get("net.secret")
	require.ErrorContains(t, err, "escapes")
	require.Error(t, k.Set(sysctl.Setting{Key: "net.secret", Value: "1"}))
	require.NoError(t, k.Set(sysctl.Setting{Key: "kernel.x", Value: "1"}))
	secret, err := os.ReadFile(filepath.Join(outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "0\n", string(secret))
}

// The keys that the real kernel changes along are restored.
func TestSYS8_RealKernelForwarding(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "eth1")
	veth(t, "lxc1", "lxc2.7")
	k := sysctl.Kernel{}
	require.NoError(t, k.Set(
		sysctl.Setting{Key: "net.ipv4.conf.eth1.forwarding", Value: "1"},
		sysctl.Setting{Key: "net.ipv6.conf.eth1.forwarding", Value: "1"},
		sysctl.Setting{Key: "net.ipv6.conf.default.forwarding", Value: "1"},
	))
	before := values(t)
	state := filepath.Join(t.TempDir(), "state")
	s := recordedValues{sysctl.Settings{Values: sysctl.Forwarding()}, real(t, state)}
	require.NoError(t, s.Apply(t.Context()))
	changed := differing(before, values(t))
	// of IPv4 and IPv6 each: five links (eth1 had it) and all; of IPv4 also
	// the default, ip_forward and all.accept_redirects
	require.Len(t, changed, 4+1+4+1+3, "%v", changed)
	veth(t, "late", "later") // get forwarding, and must not keep it
	require.NoError(t, s.Revert(t.Context()))
	after := values(t)
	require.Equal(t, "0", after["net/ipv4/conf/late/forwarding"])
	maps.DeleteFunc(after, func(key, _ string) bool { return strings.Contains(key, "/late") })
	require.Empty(t, differing(before, after))
	require.NoDirExists(t, state)
}

func procWrite(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value+"\n"), 0)
}

// Without /proc, no error blames a key.
func TestWithoutProcNoKeyIsBlamed(t *testing.T) {
	testns.Enter(t, testns.Mount)
	require.NoError(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
	err := sysctl.Kernel{}.Set(sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1"})
	require.ErrorContains(t, err, "read net.ipv4.ip_forward: no such device (there is no /proc/sys: mount a proc file system on /proc)")
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

// The fake behaves like the real kernel, write by write.
func TestFakeIsLikeTheRealKernel(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "eth0", "lxc2.7")
	fake := bootstraptest.NewKernel("eth0", "lxc2.7")
	machine := sysctl.Kernel{}
	for key := range fake.Values() { // start alike: a machine has defaults of its own
		if value, err := machine.Get(sysctl.Key(key)); err == nil && strings.HasPrefix(key, "net.ipv") {
			require.NoError(t, machine.Set(sysctl.Setting{Key: sysctl.Key(key), Value: fake.Values()[key], IgnoreFailure: value == ""}))
		}
	}
	same := func(step string) {
		for key, value := range fake.Values() {
			if got, err := machine.Get(sysctl.Key(key)); strings.HasPrefix(key, "net.ipv") {
				require.NoError(t, err, step)
				require.Equal(t, value, got, "%s: %s", step, key)
			}
		}
	}
	same("at first")
	for _, write := range []string{
		"net/ipv4/ip_forward=1", "net/ipv4/conf/all/accept_redirects=1", "net/ipv4/conf/eth0/forwarding=0",
		"net/ipv4/conf/all/forwarding=1", "net/ipv4/conf/all/forwarding=0", "net/ipv4/conf/eth0/forwarding=1",
		"net/ipv4/ip_forward=0x1", "net/ipv4/ip_forward=0", "net/ipv4/ip_forward=on", "net/ipv4/ip_forward=",
		"net/ipv6/conf/eth0/forwarding=1", "net/ipv6/conf/all/forwarding=1", "net/ipv6/conf/all/forwarding=0",
		"net/ipv6/conf/default/forwarding=1", "net/ipv6/conf/all/disable_ipv6=1", "net/ipv6/conf/all/disable_ipv6=0",
		"net/ipv4/tcp_rmem=4096 65536 131072", "net/ipv4/tcp_rmem=4096\t65536 x", "net/ipv4/conf/all/rp_filter=010",
		"net/ipv4/none=1", "net/ipv4/conf/all=1",
	} {
		name, value, _ := strings.Cut(write, "=")
		fakeErr, realErr := fake.WriteFile(name, []byte(value+"\n")), procWrite(name, value)
		for _, errno := range []error{syscall.EINVAL, syscall.ENOENT, syscall.EISDIR} {
			require.Equal(t, errors.Is(realErr, errno), errors.Is(fakeErr, errno), "%s: real %v, fake %v", write, realErr, fakeErr)
		}
		require.Equal(t, realErr == nil, fakeErr == nil, "%s: real %v, fake %v", write, realErr, fakeErr)
		same(write)
	}
	require.NoError(t, procWrite("net/ipv6/conf/default/forwarding", "1"))
	require.NoError(t, fake.WriteFile("net/ipv6/conf/default/forwarding", []byte("1")))
	veth(t, "new0", "new1")
	fake.AddLink("new0")
	fake.AddLink("new1")
	same("links added")
	link, err := netlink.LinkByName("new0")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(link))
	fake.RemoveLink("new0")
	fake.RemoveLink("new1")
	same("links removed")
}
