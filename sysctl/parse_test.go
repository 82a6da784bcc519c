// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

func TestParse(t *testing.T) {
	settings, err := sysctl.Parse(strings.NewReader(`
# a comment
; another
  net.ipv4.ip_forward=1
-net/ipv4/conf/lxc*/rp_filter = 0
- net.ipv4.conf.eth0/100.rp_filter =  2 # not a comment
-net.ipv4.conf.hub0.rp_filter
kernel.core_pattern = |/usr/bin/x = %p
kernel.empty =
no assignment
net/../x = 1
` + "kernel.nul = a\x00nothing\r\n" + "net.ipv4.tcp_rmem = 4096\t1 2\r\n"))
	require.Equal(t, []sysctl.Setting{
		{Key: "net.ipv4.ip_forward", Value: "1"},
		{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "0", IgnoreFailure: true},
		{Key: "net.ipv4.conf.eth0/100.rp_filter", Value: "2 # not a comment", IgnoreFailure: true},
		{Key: "net.ipv4.conf.hub0.rp_filter", Exclude: true},
		{Key: "kernel.core_pattern", Value: "|/usr/bin/x = %p"},
		{Key: "kernel.empty"},
		{Key: "kernel.nul", Value: "a"},
		{Key: "net.ipv4.tcp_rmem", Value: "4096\t1 2"},
	}, settings)
	for _, text := range []string{"line 10: ", "line 11: ", "line 12: "} {
		require.ErrorContains(t, err, text)
	}
	_, err = sysctl.Parse(strings.NewReader("a.b = 1\nc.d = " + strings.Repeat("x", 2<<20)))
	require.ErrorContains(t, err, "line 2: ")
}

func FuzzParse(f *testing.F) {
	f.Add("net.ipv4.ip_forward = 1\n-net.ipv4.conf.lxc*.rp_filter\n# x\n-a/b=c")
	f.Add("no\n=\n-=\n-\x00\n a.b=c=d\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings, _ := sysctl.Parse(strings.NewReader(text))
		var written strings.Builder
		for _, s := range settings {
			written.WriteString(s.Line() + "\n")
		}
		again, err := sysctl.Parse(strings.NewReader(written.String()))
		for _, s := range settings {
			if strings.ContainsAny(string(s.Key)[:1], "#;") { // after a dash these are no comment
				return
			}
		}
		require.NoError(t, err)
		require.Equal(t, settings, again)
	})
}
