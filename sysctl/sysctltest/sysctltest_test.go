// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctltest_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
	"github.com/slipway-dev/slipway/sysctl/sysctltest"
)

func TestFaults(t *testing.T) {
	fake := sysctltest.New("eth0")
	k := fake.Kernel()
	forward := sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1"}
	fake.SetReadOnly(true)
	require.ErrorIs(t, k.Set(forward), syscall.EROFS)
	fake.SetReadOnly(false)
	fake.Fail("net.ipv4.ip_forward", syscall.EPERM)
	require.ErrorIs(t, k.Set(forward), fs.ErrPermission)
	fake.Fail("net.ipv4.ip_forward", nil)
	fake.Deafen("net/ipv4/ip_forward")
	require.Error(t, k.Set(forward))
	require.Equal(t, "0", fake.Values()["net.ipv4.ip_forward"])
}

func TestOneWayValue(t *testing.T) {
	fake := sysctltest.New()
	require.NoError(t, fake.WriteFile("kernel/unprivileged_bpf_disabled", []byte("1\n")))
	require.True(t, errors.Is(fake.WriteFile("kernel/unprivileged_bpf_disabled", []byte("2\n")), syscall.EPERM))
	require.Panics(t, func() { fake.Put("kernel.unprivileged_bpf_disabled", "0") })
	id := fake.Values()["kernel.random.boot_id"]
	fake.Reboot()
	require.Equal(t, "2", fake.Values()["kernel.unprivileged_bpf_disabled"])
	require.NotEqual(t, id, fake.Values()["kernel.random.boot_id"])
}

func TestRoutesAreDroppedUnlessAcceptRAIs2(t *testing.T) {
	fake := sysctltest.New("eth0", "eth1")
	fake.LearnRouter("eth0")
	fake.LearnRouter("eth1")
	fake.Put("net.ipv6.conf.eth1.accept_ra", "2")
	fake.Put("net.ipv6.conf.lo.forwarding", "1")
	links, err := fake.Routers()
	require.NoError(t, err)
	require.Equal(t, []string{"eth1"}, links)
	fake.RemoveLink("eth1")
	links, err = fake.Routers()
	require.NoError(t, err)
	require.Empty(t, links)
}
