// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
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

func TestSYS5_WhatSystemdMayReadOtherwiseIsSaid(t *testing.T) {
	for content, want := range map[string]string{
		"net.x = 1\n# y\rnet.ipv4.ip_forward = 0\n": "2 has a carriage return within a line",
		"net.x = 1\x00net.y = 2\n":                  "1 has a NUL",
		"\n\nnet.x\v= 1\n\vnet.y = 2\n":             "3 has an unusual white space",
		"net.x =\u00a01\n":                          "1 has an unusual white space",
		"net.x = 1\r\n# ä\xff\r\nnet.y = 2\r":       "",
	} {
		n := newNode(t)
		other := n.put(t, "usr/50-x.conf", content)
		_, err := sysctl.Effective(filepath.Dir(other))
		_, adviseErr := n.dropIn().Advise(t.Context())
		if want == "" {
			require.NoError(t, errors.Join(err, adviseErr), "%q", content)
			continue
		}
		want = other + ": line " + want + ", which systemd may read differently: replace it with a space or a line break"
		require.ErrorContains(t, err, want, "%q", content)
		require.ErrorContains(t, adviseErr, want, "%q", content)
	}
}
