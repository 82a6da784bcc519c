// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestSEC3_WhatNoSettingCanHaveRecordedIsNotObeyed(t *testing.T) {
	for object, want := range map[string]string{
		"sysctl/value net.ipv4.ip_forward":       "",
		"sysctl/value net/ipv4/ip_forward":       "is not one key in its dotted spelling",
		"sysctl/value net.ipv4.conf.*.rp_filter": "", // a link may have this name; nothing reads it as a pattern
		"sysctl/value kernel/../../../etc/x":     "sysctl key",
		"sysctl/value ":                          "sysctl key",
		"sysctl/file /etc/sysctl.d/99-x.conf":    "",
		"sysctl/file /etc/passwd":                "a drop-in ends with .conf",
		"sysctl/file /proc/sys/x.conf":           "below /proc",
		"sysctl/file etc/sysctl.d/x.conf":        "not an absolute, clean path",
		"sysctl/dir /etc/sysctl.d":               "",
		"sysctl/dir /sys/kernel":                 "below /sys",
	} {
		kind, name, _ := strings.Cut(object, " ")
		e := journal.Entry{Kind: kind, Object: name}
		if kind == "sysctl/value" {
			e.Before.Type = "value"
		}
		err := sysctl.Handler{}.Owns(e)
		if want == "" {
			require.NoError(t, err, object)
		} else {
			require.ErrorContains(t, err, want, object)
		}
	}
	file := journal.Entry{Kind: "sysctl/value", Object: "net.ipv4.ip_forward", Before: journal.State{Type: "file"}}
	require.ErrorContains(t, sysctl.Handler{}.Owns(file), "is not a value")
}
