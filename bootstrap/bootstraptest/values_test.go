// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestAnyCallCanBeMadeToFail(t *testing.T) {
	k, dir := &bootstraptest.Kernel{}, t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bpf"), 0o755))
	values, key := sysctl.Kernel{Files: k}, "net/ipv4/ip_forward"
	for op, call := range map[string]func() error{
		"statx":   func() error { _, _, _, err := k.Stat(dir); return err },
		"mount":   func() error { return attach(k, filepath.Join(dir, "bpf"), "bpf") },
		"umount":  func() error { return k.Unmount(dir) },
		"open":    func() error { return values.Set(sysctl.Setting{Key: sysctl.Key(key), Value: "1"}) },
		"write":   func() error { return values.Set(sysctl.Setting{Key: sysctl.Key(key), Value: "1"}) },
		"read":    func() error { _, err := values.Get(sysctl.Key(key)); return err },
		"readdir": func() error { _, err := k.ReadDir("net"); return err },
	} {
		var asked []string
		k.Fail = func(o, path string) error {
			if asked = append(asked, o+" "+path); o == op {
				return syscall.EIO
			}
			return nil
		}
		require.ErrorIs(t, call(), syscall.EIO, op)
		require.Contains(t, strings.Join(asked, "\n"), op+" ")
		require.Empty(t, k.Mounts(filepath.Join(dir, "bpf")))
	}
	require.Equal(t, "0", k.Values()["net.ipv4.ip_forward"])
	k.Fail = nil
	k.Deafen(key)
	require.Error(t, values.Set(sysctl.Setting{Key: sysctl.Key(key), Value: "1"}))
	require.Equal(t, "0", k.Values()["net.ipv4.ip_forward"])
}

func TestOneWayValue(t *testing.T) {
	fake := &bootstraptest.Kernel{}
	require.NoError(t, fake.WriteFile("kernel/unprivileged_bpf_disabled", []byte("1\n")))
	require.True(t, errors.Is(fake.WriteFile("kernel/unprivileged_bpf_disabled", []byte("2\n")), syscall.EPERM))
	require.Panics(t, func() { fake.PutValue("kernel.unprivileged_bpf_disabled", "0") })
	id := fake.Values()["kernel.random.boot_id"]
	fake.Reboot()
	require.Equal(t, "2", fake.Values()["kernel.unprivileged_bpf_disabled"])
	require.NotEqual(t, id, fake.Values()["kernel.random.boot_id"])
}

func TestRoutesAreDroppedUnlessAcceptRAIs2(t *testing.T) {
	fake := bootstraptest.NewKernel("eth0", "eth1")
	fake.LearnRouter("eth0")
	fake.LearnRouter("eth1")
	fake.PutValue("net.ipv6.conf.eth1.accept_ra", "2")
	fake.PutValue("net.ipv6.conf.lo.forwarding", "1")
	links, err := fake.Routers()
	require.NoError(t, err)
	require.Equal(t, []string{"eth1"}, links)
	fake.RemoveLink("eth1")
	links, err = fake.Routers()
	require.NoError(t, err)
	require.Empty(t, links)
}
