// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestSEC3_WhatNoSettingCanHaveRecordedIsNotObeyed(t *testing.T) {
	kinds := map[string]*ledger.Kind{}
	for _, k := range (sysctl.DropIn{}).Kinds() {
		kinds[k.Name] = k
	}
	for object, want := range map[string]string{
		"sysctl net.ipv4.ip_forward":          "",
		"sysctl net.ipv4.conf.lo.rp_filter#1": "",
		"sysctl net/ipv4/ip_forward":          "is not one key in its dotted spelling",
		"sysctl net.ipv4.conf.*.rp_filter":    "", // a link may have this name; nothing reads it as a pattern
		"sysctl kernel/../../../etc/x":        "sysctl key",
		"sysctl ":                             "sysctl key",
		"sysctl.d /etc/sysctl.d/99-x.conf":    "",
		"sysctl.d /etc/passwd":                "a drop-in ends with .conf",
		"sysctl.d /proc/sys/x.conf":           "below /proc",
		"sysctl.d etc/sysctl.d/x.conf":        "not an absolute, clean path",
		"dir /etc/sysctl.d":                   "",
		"dir /sys/kernel":                     "below /sys",
	} {
		kind, name, _ := strings.Cut(object, " ")
		err := kinds[kind].Owns(name)
		if want == "" {
			require.NoError(t, err, object)
		} else {
			require.ErrorContains(t, err, want, object)
		}
	}
}
