// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestSYS1_SpellingsOfOneKey(t *testing.T) {
	for spelling, key := range map[string]sysctl.Key{
		"net.ipv4.ip_forward":                 "net.ipv4.ip_forward",
		"net/ipv4/ip_forward":                 "net.ipv4.ip_forward",
		"net.ipv4.conf.eth0/100.rp_filter":    "net.ipv4.conf.eth0/100.rp_filter",
		"net/ipv4/conf/eth0.100/rp_filter":    "net.ipv4.conf.eth0/100.rp_filter",
		"net/ipv4.x/y":                        "net.ipv4/x.y",
		"net.ipv4.conf.lxc*.rp_filter":        "net.ipv4.conf.lxc*.rp_filter",
		"net/ipv4/conf/{lxc,veth}?/rp_filter": "net.ipv4.conf.{lxc,veth}?.rp_filter",
		"kernel":                              "kernel",
		"net.ipv4.conf.\xff.rp_filter":        "net.ipv4.conf.\xff.rp_filter",
		"net.ipv4.conf.a..../rp_filter":       "",
	} {
		got, err := sysctl.ParseKey(spelling)
		if key == "" {
			require.Error(t, err, spelling)
			continue
		}
		require.NoError(t, err, spelling)
		require.Equal(t, key, got, spelling)
	}
}

func TestSYS1_NoKeyLeavesProcSys(t *testing.T) {
	for _, bad := range []string{
		"", "/", "/proc/sys/net/ipv4/ip_forward", "..", "../etc/passwd", "net/../../etc/passwd", "net/..", "./net",
		"net.//.ipv4", "net..ipv4", "net/ipv4/", "net.ipv4.", ".net", "net/./ipv4", "net.ipv4\x00", "net.ipv4.\n",
		"net.ipv4. x", "-net.ipv4.ip_forward", "net.//",
	} {
		_, err := sysctl.ParseKey(bad)
		require.Error(t, err, "%q", bad)
		require.ErrorContains(t, err, "not a sysctl key")
		_, err = sysctl.Kernel{}.Get(sysctl.Key(bad))
		require.ErrorContains(t, err, "not a sysctl key", "%q", bad)
		require.Equal(t, "sysctl.key-invalid", code.Of(err))
		require.ErrorContains(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: sysctl.Key(bad), Value: "1"}), "not a sysctl key")
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "a..b", "/x", "a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := sysctl.ParseKey(s)
		if err != nil {
			return
		}
		again, err := sysctl.ParseKey(string(key))
		require.NoError(t, err)
		require.Equal(t, key, again)
		for element := range strings.SplitSeq(string(key), ".") {
			require.NotContains(t, []string{"", "/", "//"}, element)
		}
	})
}
