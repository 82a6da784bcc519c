// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

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
