// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

func TestSEC3_WhatNoInstallationCanHaveRecordedIsNotObeyed(t *testing.T) {
	for object, want := range map[string]string{
		"cni-binary /opt/cni/bin/cilium-cni":           "",
		"cni-conf /etc/cni/net.d/05-cilium.conflist":   "",
		"cni-conf /etc/cni/net.d/10-x.conf.cilium_bak": "",
		"dir /etc/cni":                              "",
		"cni-conf /etc/passwd":                      "CNI directory /etc is the system's",
		"cni-conf /etc/shadow":                      "CNI directory /etc is the system's",
		"cni-binary /usr/bin/sudo":                  "CNI directory /usr/bin is the system's",
		"cni-conf /init":                            "CNI directory / is the system's",
		"cni-conf /etc/cni/../passwd":               "not an absolute, clean path",
		"cni-conf /proc/1/root/etc/passwd":          "below /proc",
		"cni-conf etc/cni/net.d/05-cilium.conflist": "not an absolute, clean path",
		"dir /": "not an absolute, clean path",
		"cni-conf /sys/fs/cgroup/cgroup.subtree_control":      "below /sys",
		"cni-conf /dev/05-cilium.conflist":                    "below /dev",
		"cni-binary /opt/cni/bin/../../../usr/bin/cilium-cni": "not an absolute, clean path",
	} {
		name, path, _ := strings.Cut(object, " ")
		kinds := append(cniinstall.Uninstall{}.Kinds(), ledger.Dir())
		kind := slices.IndexFunc(kinds, func(k *ledger.Kind) bool { return k.Name == name })
		err := kinds[kind].Owns(path)
		if want == "" {
			require.NoError(t, err, object)
		} else {
			require.ErrorContains(t, err, want, object)
		}
	}
}

func TestSEC3_NothingIsInstalledWhereItCouldNotBeUndone(t *testing.T) {
	for _, i := range []cniinstall.Install{{BinDir: "/usr/bin"}, {ConfDir: "/etc/"}, {BinDir: "/opt/../etc"}} {
		_, err := i.Check(t.Context())
		require.ErrorContains(t, err, "is the system's")
		require.ErrorContains(t, i.Apply(t.Context()), "is the system's")
	}
}
