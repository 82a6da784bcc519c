// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// advertise sends a router advertisement over the link from, for 1800 s, from
// fe80::1 to all nodes (RFC 4861, 4.2).
func advertise(t *testing.T, from string) {
	t.Helper()
	link, err := netlink.LinkByName(from)
	require.NoError(t, err)
	src, dst := net.ParseIP("fe80::1"), net.ParseIP("ff02::1")
	ra := []byte{134, 0, 0, 0, 64, 0, 1800 >> 8, 1800 & 0xff, 0, 0, 0, 0, 0, 0, 0, 0}
	pseudo := append(append(append([]byte{}, src...), dst...), 0, 0, 0, byte(len(ra)), 0, 0, 0, unix.IPPROTO_ICMPV6)
	binary.BigEndian.PutUint16(ra[2:], checksum(append(pseudo, ra...)))
	frame := append([]byte{0x33, 0x33, 0, 0, 0, 1}, link.Attrs().HardwareAddr...)
	frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(ra)), unix.IPPROTO_ICMPV6, 255)
	frame = append(append(append(frame, src...), dst...), ra...)

	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index}))
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}

// learnRouter sends advertisements until the kernel has a default route.
func learnRouter(t *testing.T, from, link string) {
	t.Helper()
	updates, done := make(chan netlink.RouteUpdate, 64), make(chan struct{})
	defer close(done)
	require.NoError(t, netlink.RouteSubscribe(updates, done))
	for range 20 {
		advertise(t, from)
		again := time.After(time.Second)
		for waiting := true; waiting; {
			select {
			case <-updates:
				if hasDefault(t, link) {
					return
				}
			case <-again:
				waiting = false
			}
		}
	}
	require.FailNow(t, "no default route was learnt")
}

func hasDefault(t *testing.T, name string) bool {
	t.Helper()
	link, err := netlink.LinkByName(name)
	require.NoError(t, err)
	routes, err := netlink.RouteList(link, netlink.FAMILY_V6)
	require.NoError(t, err)
	for _, r := range routes {
		if ones, _ := r.Dst.Mask.Size(); ones == 0 && r.Dst.IP.IsUnspecified() {
			return true
		}
	}
	return false
}

func TestSYS8_RealRouterLearntRoute(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "ra0", "eth0")
	learnRouter(t, "ra0", "eth0")
	before := values(t)

	s := recordedValues{sysctl.Settings{Values: sysctl.Forwarding()}, temp(t)}
	changes := check(t, s)
	require.Equal(t, "set net.ipv6.conf.eth0.accept_ra = 2 (is 1), to keep the default route of eth0 when IPv6 forwarding is on", changes[0])
	require.NoError(t, s.Apply(t.Context()))
	require.True(t, hasDefault(t, "eth0"), "the route is kept")
	require.Empty(t, check(t, s))
	require.NoError(t, s.Revert(t.Context()))
	require.Empty(t, differing(before, values(t)))
	require.True(t, hasDefault(t, "eth0"))
}

// This is why the guard exists: the kernel drops the route whichever link forwards.
func TestSYS8_RealForwardingStaysOffWhereTheRouteWouldBeLost(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "ra0", "eth0")
	learnRouter(t, "ra0", "eth0")
	off := sysctl.Setting{Key: "net.ipv6.conf.eth0.accept_ra", Value: "0"}
	require.NoError(t, sysctl.Kernel{}.Set(off))
	for _, key := range []sysctl.Key{"net.ipv6.conf.all.forwarding", "net.ipv6.conf.ra0.forwarding"} {
		require.ErrorContains(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: key, Value: "1"}), "a default route would be lost: link eth0")
		require.True(t, hasDefault(t, "eth0"))
	}
	require.NoError(t, procWrite("net/ipv6/conf/ra0/forwarding", "1"))
	require.False(t, hasDefault(t, "eth0"))
}

// A daemon that processes advertisements itself keeps its routes.
func TestSYS8_RealRouteOfADaemonNeedsNoGuard(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "ra0", "eth0")
	link, err := netlink.LinkByName("eth0")
	require.NoError(t, err)
	_, all, err := net.ParseCIDR("::/0")
	require.NoError(t, err)
	require.NoError(t, netlink.RouteAdd(&netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: all, Gw: net.ParseIP("fe80::1"), Protocol: unix.RTPROT_RA,
	}))
	require.True(t, hasDefault(t, "eth0"))
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Forwarding()...))
	require.True(t, hasDefault(t, "eth0"))
	value, err := sysctl.Kernel{}.Get("net.ipv6.conf.eth0.accept_ra")
	require.NoError(t, err)
	require.Equal(t, "1", value)
}
