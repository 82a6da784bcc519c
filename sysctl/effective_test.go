// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

func TestSYS5_SeparatorsThatSayNothing(t *testing.T) {
	for line, want := range map[string]sysctl.Key{
		"/net/ipv4/ip_forward":        "net.ipv4.ip_forward",
		"//net//ipv4///ip_forward//":  "net.ipv4.ip_forward",
		".net..ipv4.ip_forward.":      "net.ipv4.ip_forward",
		"/net/./ipv4/ip_forward/.":    "net.ipv4.ip_forward",
		"/net/ipv4/conf/eth0.100/tag": "net.ipv4.conf.eth0/100.tag",
		"/net/ipv4/conf/lxc*//tag":    "net.ipv4.conf.lxc*.tag",
		"/../etc/passwd":              "",
		"net//..//x":                  "",
		"//":                          "",
		".":                           "",
		"/x.y/z":                      "",
	} {
		all, err := sysctl.Parse(strings.NewReader("-" + line + " = 1\n"))
		if want == "" {
			require.ErrorContains(t, err, "not a sysctl key", line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, []sysctl.Setting{{Key: want, Value: "1", IgnoreFailure: true}}, all, line)
	}
}

// A carriage return and a NUL end a line, and no other white space than blanks and tabs says
// nothing.
func TestSYS5_LinesEndWhereSystemdEndsThem(t *testing.T) {
	n := newNode(t)
	n.put(t, "usr/50-x.conf", "net.a = 1\n# y\rnet.b = 2\nnet.c = 3\x00net.d = 4\r\n# ä\xff\r\r\nnet.e =\u00a05\v\r")
	all, err := sysctl.Effective(filepath.Join(n.root, "usr"))
	require.NoError(t, err)
	var lines []string
	for _, a := range all {
		lines = append(lines, fmt.Sprint(a.Line, ": ", a.Setting.Line()))
	}
	require.Equal(t, []string{"1: net.a = 1", "2: net.b = 2", "3: net.c = 3", "3: net.d = 4", "5: net.e = \u00a05\v"}, lines)
}
